// Range checks of an optimizer's constants. Each gives INVALID_ARGUMENT "FIELD: must be RANGE, got
// VALUE"; NaN is in no range.

#ifndef SATRAP_EMBEDDING_PS_OPTIMIZER_CHECK_RANGE_H_
#define SATRAP_EMBEDDING_PS_OPTIMIZER_CHECK_RANGE_H_

#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace satrap {

inline absl::Status CheckRange(absl::string_view field, absl::string_view range, bool in_range,
                               float value) {
  if (in_range) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(field, ": must be ", range, ", got ", value));
}

inline absl::Status CheckPositive(absl::string_view field, float value) {
  return CheckRange(field, "finite and > 0",
                    value > 0 && value <= std::numeric_limits<float>::max(), value);
}

inline absl::Status CheckNotNegative(absl::string_view field, float value) {
  return CheckRange(field, "finite and >= 0",
                    value >= 0 && value <= std::numeric_limits<float>::max(), value);
}

// A decay rate: 0 <= value < 1.
inline absl::Status CheckDecay(absl::string_view field, float value) {
  return CheckRange(field, "in [0, 1)", value >= 0 && value < 1, value);
}

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_PS_OPTIMIZER_CHECK_RANGE_H_
