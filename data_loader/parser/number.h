// Parses numbers, by one grammar for all formats:
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

// Rounds correctly. False, with *value unspecified, if `text` is not a number, or has an exponent
// although `allow_exponent` is false.
bool ParseNumber(absl::string_view text, bool allow_exponent, float* value);

// A time in whole milliseconds, given as a number of units of `unit_ms` milliseconds. The number is
// an integer, or another number, which is rounded: tools write whole columns that lack a value
// somewhere as "1700000000000.0" or "1.7e12". False, with *milliseconds unspecified, if `text` is
// no number or does not fit into 64 bits. REQUIRES: unit_ms > 0
bool ParseTime(absl::string_view text, int64_t unit_ms, int64_t* milliseconds);

// Both return false, with *value unspecified, if `text` is not an integer that fits. ParseUnsigned
// takes digits only, no sign.
bool ParseInteger(absl::string_view text, int64_t* value);
bool ParseUnsigned(absl::string_view text, uint64_t* value);

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_PARSER_NUMBER_H_
