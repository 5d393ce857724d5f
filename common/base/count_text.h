// Writes counts for messages and reports.
//
// Thread-safe: the functions depend only on their arguments.

#ifndef SATRAP_COMMON_BASE_COUNT_TEXT_H_
#define SATRAP_COMMON_BASE_COUNT_TEXT_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace satrap {

// "1,234,567"
std::string CountText(uint64_t count);

// A count with its noun: "1 sample", "0 samples", "1,234 samples". `many` is the noun's plural; if
// it is empty, the plural is the noun and an s.
std::string Counted(uint64_t count, absl::string_view one, absl::string_view many = "");

}  // namespace satrap

#endif  // SATRAP_COMMON_BASE_COUNT_TEXT_H_
