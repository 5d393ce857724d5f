// The commands of ./satrap: the name, arguments and purpose of each, and which of them the user
// typed. A command parses its own flags (command_flags.h).
//
// Thread-safe: the functions depend only on their arguments.

#ifndef SATRAP_DEPLOY_CLI_COMMAND_LINE_H_
#define SATRAP_DEPLOY_CLI_COMMAND_LINE_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/flags/flags.h"

namespace satrap {

// A command as it was typed.
struct CommandCall {
  std::string name;               // "train"; "help", with the command to explain or none
  std::vector<std::string> args;  // after the name: arguments and flags
  std::string install_dir = ".";  // the folder of deploy/jobs and the zoo
};

// `args` does not include the program's name. Returns a call of "help" if `args` has no command or
// contains --help. INVALID_ARGUMENT says in one line what is wrong and what was probably meant.
absl::StatusOr<CommandCall> ParseCommandLine(const std::vector<std::string>& args);

// Parses the flags of a call, and returns its arguments. INVALID_ARGUMENT as ParseFlags returns it,
// or if the number of arguments is wrong for the command.
absl::StatusOr<std::vector<std::string>> ParseArguments(const CommandCall& call,
                                                        const std::vector<Flag>& flags);

// Returns the status of ParseArguments, for a program that does not implement the command itself.
// OK for commands that parse their arguments elsewhere: bench, produce, topics.
absl::Status CheckArguments(const CommandCall& call);

// Parses `checkpoint RUN`, or `checkpoint WORD PATH` where WORD is list, inspect or verify, and
// `flags`. Returns ("", RUN) or (WORD, PATH). INVALID_ARGUMENT for other words.
absl::StatusOr<std::pair<std::string, std::string>> ParseCheckpoint(const CommandCall& call,
                                                                    const std::vector<Flag>& flags);

// Parses `scale RUN FIELD=N...`. Returns RUN, then the assignments. Only fields that `resume --set`
// may change are valid, but this function does not check that. INVALID_ARGUMENT if an assignment
// has no "=", or names a field that a command itself sets (ProblemOfSet).
absl::StatusOr<std::vector<std::string>> ParseScale(const CommandCall& call,
                                                    const std::vector<Flag>& flags);

// The help text of one command, or the list of commands if there is none with that name.
std::string HelpText(absl::string_view command_name);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_CLI_COMMAND_LINE_H_
