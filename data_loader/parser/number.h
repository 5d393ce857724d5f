// Parses numbers, with the same grammar in all formats:
//
//   number   [+-] (digits [. digits*] | . digits) [(e|E) [+-] digits]     finite as a float
//   integer  [+-] digits                                                   within 64 bits
//
// Nothing else is a number: not "nan", "inf" or "0x1f", and nothing with spaces.

#ifndef SATRAP_DATA_LOADER_PARSER_NUMBER_H_
#define SATRAP_DATA_LOADER_PARSER_NUMBER_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace satrap {

// Parses a number and rounds it correctly. False, with *value unspecified, if `text` is not a
// number, or has an exponent although `allow_exponent` is false.
bool ParseNumber(absl::string_view text, bool allow_exponent, float* value);

// Parses a time given in units of `unit_ms` milliseconds. The number need not be an integer; the
// result is rounded to whole milliseconds. Tools write a column of integers as "1700000000000.0" or
// "1.7e12" if one of its values is missing. False, with *milliseconds unspecified, if `text` is not
// a number or the result does not fit into 64 bits. REQUIRES: unit_ms > 0
bool ParseTime(absl::string_view text, int64_t unit_ms, int64_t* milliseconds);

// Both return false, with *value unspecified, if `text` is not an integer that fits. ParseUnsigned
// accepts only digits, no sign.
bool ParseInteger(absl::string_view text, int64_t* value);
bool ParseUnsigned(absl::string_view text, uint64_t* value);

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_PARSER_NUMBER_H_
