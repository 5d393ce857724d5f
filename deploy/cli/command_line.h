// What the user typed after ./satrap, understood and checked.
//
// Thread-safe: functions of their arguments.

#ifndef SATRAP_DEPLOY_CLI_COMMAND_LINE_H_
#define SATRAP_DEPLOY_CLI_COMMAND_LINE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace satrap {

enum class Command { kHelp, kDemo, kTrain, kValidate, kEvaluate, kPredict, kStatus, kBench };

struct CommandLine {
  Command command = Command::kHelp;
  std::string command_name;              // "train"; for kHelp the command that help is asked for
  std::vector<std::string> arguments;    // JOB; RUN FILE; NAME
  std::string install_dir = ".";         // --install_dir: where deploy/jobs and the zoo lie
  std::vector<std::string> sets;         // --set path=value, in order
  std::string report;                    // --report FILE
  std::string run_dir;                   // --run_dir DIR
  std::string init_from;                 // --init_from RUN
  std::string output;                    // --output FILE (predict)
  std::vector<std::string> bench_flags;  // bench: all other flags, as typed
};

// `args` does not hold the program's name. INVALID_ARGUMENT, in one line, naming what is wrong and
// what was probably meant.
absl::StatusOr<CommandLine> ParseCommandLine(const std::vector<std::string>& args);

// The help of one command, or of all if there is no such command.
std::string HelpText(absl::string_view command_name);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_CLI_COMMAND_LINE_H_
