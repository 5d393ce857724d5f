// The commands of the command line, one function each. Each prints its result or error and returns
// the process's exit code: 0, 1 for an error, 130 for a run that was interrupted. A program has the
// commands that it links: deploy/satrap_cli has those of the first group below, deploy/satrap_tools
// has all.
//
// REQUIRES for commands that run a job: the main thread; no gRPC has been used in this process yet

#ifndef SATRAP_DEPLOY_CLI_COMMANDS_H_
#define SATRAP_DEPLOY_CLI_COMMANDS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "deploy/cli/command_line.h"

namespace satrap {

// Call this first in main. After that, a write beyond the file size limit, or to stdout or stderr
// when nobody reads it, returns an error instead of raising a signal. So a run does not end only
// because nobody reads its progress any more.
void IgnoreSignalsOfWrites();

int TrainCommand(const CommandCall& call);
// Returns nullopt for `demo --kafka`, which KafkaDemoCommand runs.
absl::optional<int> DemoCommand(const CommandCall& call);
int ValidateCommand(const CommandCall& call);
int EvaluateCommand(const CommandCall& call);
int PredictCommand(const CommandCall& call);
int StatusCommand(const CommandCall& call);
int ResumeCommand(const CommandCall& call);
int StopCommand(const CommandCall& call);
int ScaleCommand(const CommandCall& call);
int SubmitCommand(const CommandCall& call);
int ListCommand(const CommandCall& call);
int LogsCommand(const CommandCall& call);
int DeleteCommand(const CommandCall& call);
int StoryCommand(const CommandCall& call);
int MembersCommand(const CommandCall& call);
struct ResumeFlags;
int ResumeInCluster(const std::string& run, const ResumeFlags& flags);
int CheckpointCommand(const CommandCall& call);  // takes a cut, or shows saved cuts
struct PlaceFlags;
int TakeCutOf(const std::string& run, const PlaceFlags& place);  // checkpoint RUN
// If `*space` is empty, as it is without --namespace, sets it to the namespace of `run` in the
// cluster. It stays empty for a run in a folder (NamespaceOf in deploy/submit/command/run_place.h).
absl::Status FindNamespace(const std::string& run, std::string* space);
// Replaces this process by kubectl, which runs the Satrap command `command` for the run `run` in
// the pod of the run's coordinator. Returns only if that fails, with the error.
absl::Status RunInCoordinatorPod(const std::string& run, const std::string& space,
                                 const std::vector<std::string>& command);
int ModelsCommand(const CommandCall& call);
int ModelCommand(const CommandCall& call);

// Runs one of the commands above. Returns nullopt for the commands below.
absl::optional<int> RunCoreCommand(const CommandCall& call);

int RetrieveCommand(const CommandCall& call);
int ChaosCommand(const CommandCall& call);
int BenchCommand(const CommandCall& call);
int KafkaDemoCommand(const CommandCall& call);  // demo --kafka
int RunTopicsCommand(const CommandCall& call);  // topics, also without a run

}  // namespace satrap

#endif  // SATRAP_DEPLOY_CLI_COMMANDS_H_
