#include "common/config/quantity.h"

#include <cmath>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"

namespace satrap {
namespace {

constexpr std::pair<absl::string_view, double> kSuffixes[] = {
    {"Ki", 0x1p10}, {"Mi", 0x1p20}, {"Gi", 0x1p30}, {"Ti", 0x1p40}, {"Pi", 0x1p50},
    {"Ei", 0x1p60}, {"n", 1e-9},    {"u", 1e-6},    {"m", 1e-3},    {"k", 1e3},
    {"M", 1e6},     {"G", 1e9},     {"T", 1e12},    {"P", 1e15},    {"E", 1e18},
};

}  // namespace

absl::optional<double> ParseQuantity(absl::string_view text) {
  double scale = 1;
  for (const auto& [suffix, factor] : kSuffixes) {
    if (!absl::ConsumeSuffix(&text, suffix)) continue;
    scale = factor;
    break;
  }
  // SimpleAtod would also take blanks, signs, hexadecimal numbers, "inf" and "nan".
  bool has_exponent = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (absl::ascii_isdigit(c) || c == '.') continue;
    const bool is_sign = (c == '-' || c == '+') && i > 0 && absl::ascii_tolower(text[i - 1]) == 'e';
    const bool is_exponent = (c == 'e' || c == 'E') && i > 0 && scale == 1 && !has_exponent;
    if (!is_sign && !is_exponent) return absl::nullopt;
    has_exponent = true;
  }
  double number = 0;
  if (!absl::SimpleAtod(text, &number)) return absl::nullopt;
  const double value = number * scale;
  if (!std::isfinite(value) || value <= 0) return absl::nullopt;
  return value;
}

}  // namespace satrap
