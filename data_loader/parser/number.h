// Numbers in text, as every format reads them.
//
//   number   [+-] (digits [. digits*] | . digits) [(e|E) [+-] digits]     finite as a float
//   integer  [+-] digits                                                   within 64 bits
//
// No other letters ("nan", "inf", "0x1f"), no spaces.

#ifndef SATRAP_DATA_LOADER_PARSER_NUMBER_H_
#define SATRAP_DATA_LOADER_PARSER_NUMBER_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace satrap {

// False, with *value unspecified, if `text` is no number, or has an exponent where none is allowed.
// Correctly rounded.
bool ParseNumber(absl::string_view text, bool allow_exponent, float* value);

bool ParseInteger(absl::string_view text, int64_t* value);
// Digits only.
bool ParseUnsigned(absl::string_view text, uint64_t* value);

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_PARSER_NUMBER_H_
