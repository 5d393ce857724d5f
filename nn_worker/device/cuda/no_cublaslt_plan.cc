// Implements NewCublasLtPlanner for builds without a CUDA toolkit.

#include "nn_worker/device/cuda/cublaslt_plan.h"

namespace satrap {

absl::StatusOr<std::unique_ptr<CublasLtPlanner>> NewCublasLtPlanner(
    int /*card*/, const std::string& /*library*/, absl::Span<const MeasuredAlgorithm> /*table*/) {
  return absl::UnimplementedError(
      "cannot train on a GPU: this program was built without CUDA; run ./setup cuda, and build it "
      "again");
}

}  // namespace satrap
