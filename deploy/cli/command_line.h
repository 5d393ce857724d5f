// The commands of ./satrap: what each is called, takes and does, and which of them was typed. A
// command parses its own flags (command_flags.h).
//
// Thread-safe: functions of their arguments.

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

// `args` does not include the program's name. If there is no command, or --help is among them, this
// is a call of "help". INVALID_ARGUMENT says in one line what is wrong and what was probably meant.
absl::StatusOr<CommandCall> ParseCommandLine(const std::vector<std::string>& args);

// Parses the flags of a call, and returns its arguments. INVALID_ARGUMENT as ParseFlags, and if the
// command takes another number of arguments.
absl::StatusOr<std::vector<std::string>> ParseArguments(const CommandCall& call,
                                                        const std::vector<Flag>& flags);

// The result of ParseArguments for a call, for a program that does not have the command itself. OK
// for commands that parse their arguments elsewhere: bench, produce, topics.
absl::Status CheckArguments(const CommandCall& call);

// Parses `checkpoint RUN`, or `checkpoint WORD PATH` with the word list, inspect or verify. Returns
// the word ("" for RUN), and RUN or PATH. INVALID_ARGUMENT for other words.
absl::StatusOr<std::pair<std::string, std::string>> ParseCheckpoint(const CommandCall& call);

// RUN and the FIELD=N... of `scale`. The fields are ones that `resume --set` may change.
absl::StatusOr<std::vector<std::string>> ParseScale(const CommandCall& call);

// The help text of one command, or the list of commands if there is none with that name.
std::string HelpText(absl::string_view command_name);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_CLI_COMMAND_LINE_H_
