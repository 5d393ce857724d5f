// Quantities as Kubernetes writes them: "2", "500m", "0.5", "1e9", "4Gi", "512M".
//
// Thread-safe: functions of their arguments.

#ifndef SATRAP_COMMON_CONFIG_QUANTITY_H_
#define SATRAP_COMMON_CONFIG_QUANTITY_H_

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

namespace satrap {

// The number that `text` means: "500m" is 0.5, and "4Gi" is 2^32. Nullopt if `text` is not a
// quantity, or the number is not finite and above 0.
absl::optional<double> ParseQuantity(absl::string_view text);

}  // namespace satrap

#endif  // SATRAP_COMMON_CONFIG_QUANTITY_H_
