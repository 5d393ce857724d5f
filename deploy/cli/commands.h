// The commands of the command line, one function each. Each prints its result or error and returns
// the process's exit code: 0, 1 for an error, 130 for a run that was interrupted. A program has
// those that it links: deploy/satrap_cli the first ones, deploy/satrap_tools all.
//
// REQUIRES for commands that run a job: the main thread; no gRPC has been used in this process yet

#ifndef SATRAP_DEPLOY_CLI_COMMANDS_H_
#define SATRAP_DEPLOY_CLI_COMMANDS_H_

#include "absl/types/optional.h"
#include "deploy/cli/command_line.h"

namespace satrap {

// For main, before all else: a file at its size limit, and a reader of stdout or stderr that is
// gone, are errors of the write. A run must not end because nobody reads its progress any more.
void IgnoreSignalsOfWrites();

int HelpCommand(const CommandLine& line);
int TrainCommand(const CommandLine& line);  // and demo
int ValidateCommand(const CommandLine& line);
int EvaluateCommand(const CommandLine& line);
int PredictCommand(const CommandLine& line);
int StatusCommand(const CommandLine& line);
int ResumeCommand(const CommandLine& line);
int StopCommand(const CommandLine& line);
int ScaleCommand(const CommandLine& line);
int CheckpointCommand(const CommandLine& line);  // takes a cut
int ListCutsCommand(const CommandLine& line);
int InspectCutCommand(const CommandLine& line);
int VerifyCutCommand(const CommandLine& line);
int ModelsCommand(const CommandLine& line);
int ModelCommand(const CommandLine& line);

// Runs one of these; nothing for a command of those below.
absl::optional<int> RunCoreCommand(const CommandLine& line);

int RetrieveCommand(const CommandLine& line);
int ChaosCommand(const CommandLine& line);
int BenchCommand(const CommandLine& line);
int KafkaDemoCommand(const CommandLine& line);  // demo --kafka
int RunTopicsCommand(const CommandLine& line);  // topics, also without a run

}  // namespace satrap

#endif  // SATRAP_DEPLOY_CLI_COMMANDS_H_
