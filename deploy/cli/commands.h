// The commands of the command line, one function each. Each prints its result or error and returns
// the process's exit code: 0, 1 for an error, 130 for a run that was interrupted. A program has
// those that it links: deploy/satrap_cli the first group, deploy/satrap_tools all.
//
// REQUIRES for commands that run a job: the main thread; no gRPC has been used in this process yet

#ifndef SATRAP_DEPLOY_CLI_COMMANDS_H_
#define SATRAP_DEPLOY_CLI_COMMANDS_H_

#include <string>

#include "absl/types/optional.h"
#include "deploy/cli/command_line.h"

namespace satrap {

// Call first in main. Makes a file at its size limit, and a closed reader of stdout or stderr,
// errors of the write instead of signals. A run must not end because nobody reads its progress any
// more.
void IgnoreSignalsOfWrites();

int TrainCommand(const CommandCall& call);
// Returns nothing for `demo --kafka`, which is for KafkaDemoCommand.
absl::optional<int> DemoCommand(const CommandCall& call);
int ValidateCommand(const CommandCall& call);
int EvaluateCommand(const CommandCall& call);
int PredictCommand(const CommandCall& call);
int StatusCommand(const CommandCall& call);
int ResumeCommand(const CommandCall& call);
int StopCommand(const CommandCall& call);
int ScaleCommand(const CommandCall& call);
int CheckpointCommand(const CommandCall& call);  // takes a cut, or looks at saved ones
int TakeCutOf(const std::string& run);           // checkpoint RUN
int ModelsCommand(const CommandCall& call);
int ModelCommand(const CommandCall& call);

// Runs one of the commands above; nothing for a command of those below.
absl::optional<int> RunCoreCommand(const CommandCall& call);

int RetrieveCommand(const CommandCall& call);
int ChaosCommand(const CommandCall& call);
int BenchCommand(const CommandCall& call);
int KafkaDemoCommand(const CommandCall& call);  // demo --kafka
int RunTopicsCommand(const CommandCall& call);  // topics, also without a run

}  // namespace satrap

#endif  // SATRAP_DEPLOY_CLI_COMMANDS_H_
