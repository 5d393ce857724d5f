#include "common/flags/flags.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <set>
#include <type_traits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/near_match.h"
#include "common/base/status_macros.h"

namespace satrap {
namespace {

constexpr size_t kColumns = 100;
// A flag with a longer name has a line of its own in the help. Otherwise its name would leave less
// room for the texts of all flags.
constexpr size_t kMostNameColumns = 28;

bool ReadNumber(absl::string_view text, double* to) { return absl::SimpleAtod(text, to); }

template <typename T>
bool ReadNumber(absl::string_view text, T* to) {
  if (absl::SimpleAtoi(text, to)) return true;
  // Whole numbers may also be written like 1e6, because rows and samples come in millions.
  double value;
  // Beyond 2^53 a double may differ from the number that was typed.
  constexpr double kMost = 9007199254740992;
  if (!absl::SimpleAtod(text, &value) || value != std::floor(value) || std::abs(value) > kMost ||
      value < static_cast<double>(std::numeric_limits<T>::min()) ||
      value > static_cast<double>(std::numeric_limits<T>::max())) {
    return false;
  }
  *to = static_cast<T>(value);
  return true;
}

template <typename T>
std::string RangeText(T low, T high) {
  // If the upper limit is the largest value of the type, there is in effect no limit, so none is
  // shown.
  const char* const kind = std::is_integral<T>::value ? "a whole number" : "a number";
  if (high < std::numeric_limits<T>::max()) {
    return absl::StrCat(kind, " in [", low, ", ", high, "]");
  }
  if (static_cast<double>(low) == kAboveZero) return absl::StrCat(kind, " > 0");
  return absl::StrCat(kind, " >= ", low);
}

std::string NamesOf(const std::vector<Flag>& flags) {
  if (flags.empty()) return "; no flag is taken";
  return absl::StrCat("; the flags are ",
                      absl::StrJoin(flags, ", ", [](std::string* text, const Flag& flag) {
                        absl::StrAppend(text, "--", flag.name);
                      }));
}

absl::Status Unknown(absl::string_view name, const std::vector<Flag>& flags) {
  std::vector<std::string> names;
  for (const Flag& flag : flags) names.push_back(flag.name);
  const std::string meant = DidYouMean(name, names, "--");
  return absl::InvalidArgumentError(
      absl::StrCat("unknown flag --", name, meant.empty() ? NamesOf(flags) : meant));
}

absl::Status NoFlag(absl::string_view argument, const std::vector<Flag>& flags) {
  return absl::InvalidArgumentError(absl::StrCat("'", argument, "' is not a flag", NamesOf(flags)));
}

absl::Status Take(const Flag& flag, const std::string& value) {
  const std::string problem = flag.take(value);
  if (problem.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--", flag.name, " ", value, problem));
}

// Breaks `text` into lines at blanks. Lines begin at column `indent` and end by kColumns.
std::string Wrapped(absl::string_view text, size_t indent) {
  std::string wrapped;
  size_t column = indent;
  for (const absl::string_view word :
       absl::StrSplit(text, absl::ByAnyChar(" \n"), absl::SkipEmpty())) {
    const bool is_first = wrapped.empty();
    if (!is_first && column + 1 + word.size() > kColumns) {
      absl::StrAppend(&wrapped, "\n", std::string(indent, ' '));
      column = indent;
    } else if (!is_first) {
      wrapped += ' ';
      ++column;
    }
    absl::StrAppend(&wrapped, word);
    column += word.size();
  }
  return wrapped;
}

// With `only_flags`, a word that is neither a flag nor a flag's value is an error. If a flag is
// missing as well, the error about the word is returned.
absl::StatusOr<std::vector<std::string>> Parse(const std::vector<std::string>& args,
                                               const std::vector<Flag>& flags, bool only_flags) {
  std::vector<std::string> others;
  std::set<std::string> given;
  for (size_t i = 0; i < args.size(); ++i) {
    if (!absl::StartsWith(args[i], "--")) {
      if (only_flags) return NoFlag(args[i], flags);
      others.push_back(args[i]);
      continue;
    }
    const size_t equals = args[i].find('=');
    const std::string name = args[i].substr(2, equals == std::string::npos ? equals : equals - 2);
    const auto flag = std::find_if(flags.begin(), flags.end(),
                                   [&name](const Flag& each) { return each.name == name; });
    if (flag == flags.end()) return Unknown(name, flags);
    const auto wrong = [&name](absl::string_view what) {
      return absl::InvalidArgumentError(absl::StrCat("--", name, what));
    };
    if (!given.insert(name).second && !flag->repeats) return wrong(" is given twice");
    std::string value;
    if (flag->value.empty()) {
      if (equals != std::string::npos) return wrong(" takes no value");
    } else if (equals != std::string::npos) {
      value = args[i].substr(equals + 1);
    } else if (i + 1 < args.size() && !absl::StartsWith(args[i + 1], "--")) {
      // A word that begins with two dashes is not taken as the value, because the user may have
      // forgotten the value. One dash is allowed, because a value may be a negative number.
      value = args[++i];
    }
    // Without this check, `--report=$FILE` with FILE unset would act as if the flag had not been
    // given.
    if (value.empty() && !flag->value.empty() &&
        !(flag->may_be_empty && equals != std::string::npos)) {
      return wrong(absl::StrCat(" needs a value: --", name, " ", flag->value));
    }
    RETURN_IF_ERROR(Take(*flag, value));
  }
  // A missing flag is reported last. If a name is misspelt, that is reported first, because it
  // explains why the flag is missing.
  for (const Flag& flag : flags) {
    if (!flag.is_required || given.count(flag.name) > 0) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--", flag.name, " is missing; give --", flag.name, " ", flag.value));
  }
  return others;
}

}  // namespace

Flag SwitchFlag(std::string name, std::string help, bool* to) {
  return {std::move(name), "", std::move(help), [to](const std::string&) {
            *to = true;
            return "";
          }};
}

Flag TextFlag(std::string name, std::string value, std::string help, std::string* to) {
  return {std::move(name), std::move(value), std::move(help), [to](const std::string& text) {
            *to = text;
            return "";
          }};
}

Flag TextsFlag(std::string name, std::string value, std::string help,
               std::vector<std::string>* to) {
  Flag flag{std::move(name), std::move(value), std::move(help), [to](const std::string& text) {
              to->push_back(text);
              return "";
            }};
  flag.repeats = true;
  return flag;
}

Flag ChoiceFlag(std::string name, std::string choices, std::string help, std::string* to) {
  const std::vector<std::string> each = absl::StrSplit(choices, '|');
  return {std::move(name), std::move(choices), std::move(help),
          [to, each](const std::string& text) -> std::string {
            for (const std::string& choice : each) {
              if (!absl::EqualsIgnoreCase(choice, text)) continue;
              *to = choice;
              return "";
            }
            return absl::StrCat(" is not one of ", absl::StrJoin(each, ", "));
          }};
}

template <typename T, typename Number>
Flag NumberFlag(std::string name, std::string value, std::string help, T* to,
                typename NumberOf<T>::Type low, typename NumberOf<T>::Type high) {
  return {std::move(name), std::move(value), std::move(help),
          [to, low, high](const std::string& text) -> std::string {
            Number number;
            if (!ReadNumber(text, &number) || !(number >= low && number <= high)) {
              return absl::StrCat(" is not ", RangeText(low, high));
            }
            *to = number;
            return "";
          }};
}

template Flag NumberFlag(std::string, std::string, std::string, int*, int, int);
template Flag NumberFlag(std::string, std::string, std::string, int64_t*, int64_t, int64_t);
template Flag NumberFlag(std::string, std::string, std::string, uint64_t*, uint64_t, uint64_t);
template Flag NumberFlag(std::string, std::string, std::string, double*, double, double);
template Flag NumberFlag(std::string, std::string, std::string, absl::optional<int>*, int, int);
template Flag NumberFlag(std::string, std::string, std::string, absl::optional<int64_t>*, int64_t,
                         int64_t);
template Flag NumberFlag(std::string, std::string, std::string, absl::optional<double>*, double,
                         double);
template Flag NumberFlag(std::string, std::string, std::string, absl::optional<uint64_t>*, uint64_t,
                         uint64_t);

Flag NumbersFlag(std::string name, std::string value, std::string help, std::vector<int>* to,
                 int low, int high) {
  return {std::move(name), std::move(value), std::move(help),
          [to, low, high](const std::string& text) -> std::string {
            // Collects all numbers first, so that a list with a wrong number leaves the default in
            // place.
            std::vector<int> numbers;
            for (const absl::string_view each : absl::StrSplit(text, ',')) {
              int& number = numbers.emplace_back();
              if (!ReadNumber(each, &number) || number < low || number > high) {
                return absl::StrCat(": '", each, "' is not ", RangeText(low, high));
              }
            }
            *to = std::move(numbers);
            return "";
          }};
}

Flag Required(Flag flag) {
  flag.is_required = true;
  return flag;
}

Flag MayBeEmpty(Flag flag) {
  flag.may_be_empty = true;
  return flag;
}

absl::StatusOr<std::vector<std::string>> ParseFlags(const std::vector<std::string>& args,
                                                    const std::vector<Flag>& flags) {
  return Parse(args, flags, /*only_flags=*/false);
}

absl::Status ParseOnlyFlags(const std::vector<std::string>& args, const std::vector<Flag>& flags) {
  return Parse(args, flags, /*only_flags=*/true).status();
}

std::string FlagsHelp(const std::vector<Flag>& flags) {
  const auto typed = [](const Flag& flag) {
    return absl::StrCat("  --", flag.name, flag.value.empty() ? "" : " ", flag.value);
  };
  size_t indent = 0;
  for (const Flag& flag : flags) {
    const size_t width = typed(flag).size() + 2;
    if (!flag.help.empty() && width <= kMostNameColumns) {
      indent = std::max(indent, width);
    }
  }
  indent = std::max<size_t>(indent, 12);
  std::string text;
  for (const Flag& flag : flags) {
    if (flag.help.empty()) continue;
    std::string name = typed(flag);
    name += name.size() + 2 <= indent ? std::string(indent - name.size(), ' ')
                                      : "\n" + std::string(indent, ' ');
    absl::StrAppend(&text, name, Wrapped(flag.help, indent), "\n");
  }
  return text;
}

bool AsksForHelp(const std::vector<std::string>& args) {
  return std::any_of(args.begin(), args.end(),
                     [](const std::string& arg) { return arg == "--help" || arg == "-h"; });
}

absl::optional<int> TakeProgramFlags(int argc, char** argv, absl::string_view usage,
                                     const std::vector<Flag>& flags, size_t in_order) {
  const std::vector<std::string> args(argv + 1, argv + argc);
  if (AsksForHelp(args)) {
    std::printf("%s\n\n%s", std::string(usage).c_str(), FlagsHelp(flags).c_str());
    return 0;
  }
  const auto others = ParseFlags(args, flags);
  absl::Status status = others.status();
  for (size_t i = 0; status.ok() && i < others->size(); ++i) {
    status = i < in_order ? Take(flags[i], (*others)[i]) : NoFlag((*others)[i], flags);
  }
  if (status.ok()) return absl::nullopt;
  std::fprintf(stderr, "error: %s: %s\n",
               std::filesystem::path(argv[0]).filename().string().c_str(),
               std::string(status.message()).c_str());
  return kExitWrongCommandLine;
}

}  // namespace satrap
