// The command line of a program or of a command. A table lists the flags, the value that each flag
// takes and the variable that receives it. Parsing, messages and help are made from the table.
//
//   struct Options {
//     std::string topic;
//     int64_t rows = 1000;
//     bool json = false;
//     std::vector<Flag> Table() {
//       return {Required(TextFlag("topic", "T", "the topic to write to", &topic)),
//               NumberFlag("rows", "N", "how many rows (default: 1000)", &rows, 1, 1 << 20),
//               SwitchFlag("json", "print JSON", &json)};
//     }
//   };
//
// `--name value` and `--name=value` mean the same, anywhere among the arguments. A switch takes no
// value, so the next word does not belong to it. A word that begins with two dashes is never the
// value of the flag before it, so such a value is written --name=--value.
//
// Thread-safe if the variables are: the functions depend only on their arguments.

#ifndef SATRAP_COMMON_FLAGS_FLAGS_H_
#define SATRAP_COMMON_FLAGS_FLAGS_H_

#include <cstddef>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

namespace satrap {

struct Flag {
  std::string name;   // without dashes
  std::string value;  // the name of its value in the help; empty: a switch
  // One or more sentences; line ends and indents count as blanks. If empty, the help does not list
  // the flag.
  std::string help;
  // Receives the value. Returns "", or what is wrong with the value, as a text that directly
  // follows "--name value".
  std::function<std::string(const std::string& value)> take;
  bool repeats = false;       // whether it may be given several times, each with another value
  bool is_required = false;   // whether it must be given
  bool may_be_empty = false;  // whether `--name=` means the empty text
};

Flag SwitchFlag(std::string name, std::string help, bool* to);
Flag TextFlag(std::string name, std::string value, std::string help, std::string* to);
// Each occurrence adds a value.
Flag TextsFlag(std::string name, std::string value, std::string help, std::vector<std::string>* to);
// One of the choices in `choices`, "a|b|c". The user may type upper or lower case; *to is set to
// the spelling in `choices`.
Flag ChoiceFlag(std::string name, std::string choices, std::string help, std::string* to);

// A number in [low, high]. T is int, int64_t, uint64_t or double, or absl::optional of one of
// these. Whole numbers may also be written like 1e6.
template <typename T>
struct NumberOf {
  using Type = T;
};
template <typename T>
struct NumberOf<absl::optional<T>> {
  using Type = T;
};
template <typename T, typename Number = typename NumberOf<T>::Type>
Flag NumberFlag(std::string name, std::string value, std::string help, T* to,
                typename NumberOf<T>::Type low,
                typename NumberOf<T>::Type high = std::numeric_limits<Number>::max());
// One or more numbers separated by commas; they replace those of *to.
Flag NumbersFlag(std::string name, std::string value, std::string help, std::vector<int>* to,
                 int low, int high);

// Pass this as `low` for a number that must be above 0.
inline constexpr double kAboveZero = std::numeric_limits<double>::denorm_min();

Flag Required(Flag flag);
Flag MayBeEmpty(Flag flag);

// Sets the variables of the flags, and returns the other arguments in order. INVALID_ARGUMENT, in
// one line, for a flag that is unknown, missing, given twice, without a value or with a wrong
// value: names the flag and says what is expected.
absl::StatusOr<std::vector<std::string>> ParseFlags(const std::vector<std::string>& args,
                                                    const std::vector<Flag>& flags);

// Like ParseFlags, but an argument that is not a flag is an error, too; the message names it.
absl::Status ParseOnlyFlags(const std::vector<std::string>& args, const std::vector<Flag>& flags);

// Two columns: each flag with its value, and its help. Empty if there are no flags.
std::string FlagsHelp(const std::vector<Flag>& flags);

// Whether --help or -h is among the arguments. If so, errors in the other arguments do not matter.
bool AsksForHelp(const std::vector<std::string>& args);

inline constexpr int kExitWrongCommandLine = 2;

// For main. Returns the exit code if the program must end: 0 after --help, which prints `usage` and
// the flags; kExitWrongCommandLine after an error, which is printed to stderr. Arguments that are
// not flags become the values of the first `in_order` flags, in order; there may be fewer.
absl::optional<int> TakeProgramFlags(int argc, char** argv, absl::string_view usage,
                                     const std::vector<Flag>& flags, size_t in_order = 0);

}  // namespace satrap

#endif  // SATRAP_COMMON_FLAGS_FLAGS_H_
