// Becomes the output of algorithm_table_cuda (nn_worker/backend/benchmark).

#include "nn_worker/device/cuda/algorithm_table.h"

namespace satrap {

absl::Span<const MeasuredAlgorithm> MeasuredAlgorithms() {
  // No card has been measured yet.
  return {};
}

}  // namespace satrap
