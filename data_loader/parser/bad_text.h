// How a reason shows the bytes of a bad record: only a few, and always printable, so that a reason
// is one line in a terminal, a log and a quarantine file.
//
// Thread-safe: functions of their arguments.

#ifndef SATRAP_DATA_LOADER_PARSER_BAD_TEXT_H_
#define SATRAP_DATA_LOADER_PARSER_BAD_TEXT_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace satrap {

// 'text': the first 40 bytes, escaped as in C; "..." if there are more.
std::string ShownText(absl::string_view text);

// 'a', 'b', 'c': the first three; "and 5 more" if there are more.
std::string ShownTexts(const std::vector<std::string>& texts);

// column 'name' holds 'text'
std::string ColumnHolds(absl::string_view column, absl::string_view text);

// Why a line of more than 1 MiB is bad, given its beginning.
std::string LineTooLong(absl::string_view line);

// The part of a reason that says what a number must look like (number.h).
inline constexpr char kNumberBelongs[] =
    " where a number belongs, such as 12, -0.5 or 1e3, at most 3.4e38";

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_PARSER_BAD_TEXT_H_
