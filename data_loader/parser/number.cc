#include "data_loader/parser/number.h"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <string>

namespace satrap {
namespace {

bool IsDigit(char c) { return static_cast<unsigned char>(c - '0') < 10; }

// Advances *at past digits. Returns whether there was at least one.
bool SkipDigits(const char** at, const char* end) {
  const char* from = *at;
  while (*at != end && IsDigit(**at)) ++*at;
  return *at != from;
}

// Whether [at, end) is an unsigned number by the grammar of number.h. from_chars alone would also
// accept "nan" and "inf", and would stop without an error at text after a number.
bool IsNumber(const char* at, const char* end, bool allow_exponent) {
  const bool digits_before = SkipDigits(&at, end);
  bool digits_behind = false;
  if (at != end && *at == '.') {
    ++at;
    digits_behind = SkipDigits(&at, end);
  }
  if (!digits_before && !digits_behind) return false;
  if (at != end && allow_exponent && (*at == 'e' || *at == 'E')) {
    ++at;
    if (at != end && (*at == '+' || *at == '-')) ++at;
    if (!SkipDigits(&at, end)) return false;
  }
  return at == end;
}

}  // namespace

bool ParseNumber(absl::string_view text, bool allow_exponent, float* value) {
  const char* at = text.data();
  const char* end = at + text.size();
  const bool negative = at != end && *at == '-';
  if (at != end && (*at == '-' || *at == '+')) ++at;
  // The fast path, for most fields: an integer of up to seven digits is exact in a float.
  if (at != end && end - at <= 7) {
    uint32_t integer = 0;
    const char* digit = at;
    while (digit != end && IsDigit(*digit)) integer = integer * 10 + (*digit++ - '0');
    if (digit == end) {
      *value = negative ? -static_cast<float>(integer) : static_cast<float>(integer);
      return true;
    }
  }
  if (!IsNumber(at, end, allow_exponent)) return false;
  float magnitude = 0;
  const std::from_chars_result result = std::from_chars(at, end, magnitude);
  if (result.ec == std::errc::result_out_of_range) {
    // from_chars does not say whether the number is too small or too large, but strtof does: it
    // returns 0 or infinity.
    magnitude = std::strtof(std::string(at, end).c_str(), nullptr);
  } else if (result.ec != std::errc() || result.ptr != end) {
    return false;
  }
  *value = negative ? -magnitude : magnitude;
  return std::isfinite(magnitude);
}

bool ParseTime(absl::string_view text, int64_t unit_ms, int64_t* milliseconds) {
  int64_t units;
  if (ParseInteger(text, &units)) return !__builtin_mul_overflow(units, unit_ms, milliseconds);
  const char* at = text.data();
  const char* end = at + text.size();
  const bool negative = at != end && *at == '-';
  if (at != end && (*at == '-' || *at == '+')) ++at;
  if (!IsNumber(at, end, true)) return false;
  double magnitude = 0;
  const std::from_chars_result result = std::from_chars(at, end, magnitude);
  if (result.ec != std::errc() || result.ptr != end) return false;
  const double exact =
      std::round((negative ? -magnitude : magnitude) * static_cast<double>(unit_ms));
  // 2^63 is exact as a double, and is the least number that does not fit.
  if (!(exact >= -0x1p63 && exact < 0x1p63)) return false;
  *milliseconds = static_cast<int64_t>(exact);
  return true;
}

bool ParseInteger(absl::string_view text, int64_t* value) {
  const char* at = text.data();
  const char* end = at + text.size();
  if (at != end && *at == '+') {
    ++at;
    if (at == end || !IsDigit(*at)) return false;
  }
  const std::from_chars_result result = std::from_chars(at, end, *value);
  return at != end && result.ec == std::errc() && result.ptr == end;
}

bool ParseUnsigned(absl::string_view text, uint64_t* value) {
  const char* at = text.data();
  const char* end = at + text.size();
  if (at == end || !IsDigit(*at)) return false;
  const std::from_chars_result result = std::from_chars(at, end, *value);
  return result.ec == std::errc() && result.ptr == end;
}

}  // namespace satrap
