// Shows the bytes of a bad record in a reason: only a few of them, and always printable, so that a
// reason is one line in a terminal, a log and a quarantine file.
//
// Thread-safe: the functions depend only on their arguments.

#ifndef SATRAP_DATA_LOADER_PARSER_BAD_TEXT_H_
#define SATRAP_DATA_LOADER_PARSER_BAD_TEXT_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace satrap {

// Returns 'text': its first 40 bytes, escaped as in C, and "..." if there are more.
std::string ShownText(absl::string_view text);

// Returns the first three texts and, if there are more, how many: 'a', 'b', 'c' and 5 more
std::string ShownTexts(const std::vector<std::string>& texts);

// Returns: column 'name' holds 'text'
std::string ColumnHolds(absl::string_view column, absl::string_view text);

// The reason why a line of more than 1 MiB is bad. `line` is its beginning.
std::string LineTooLong(absl::string_view line);

// The part of a reason that says what a number must look like (number.h).
inline constexpr char kNumberBelongs[] =
    ", but a number is expected, such as 12, -0.5 or 1e3, at most 3.4e38";

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_PARSER_BAD_TEXT_H_
