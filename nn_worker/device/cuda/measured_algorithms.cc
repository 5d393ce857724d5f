// The output of `algorithm_table` (nn_worker/backend/benchmark), card by card.

#include "nn_worker/device/cuda/algorithm_table.h"

namespace satrap {

absl::Span<const MeasuredAlgorithm> MeasuredAlgorithms() {
  // No card has been measured yet.
  return {};
}

}  // namespace satrap
