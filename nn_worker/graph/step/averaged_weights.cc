#include "nn_worker/graph/step/averaged_weights.h"

#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "nn_worker/backend/tensor_copy.h"

namespace satrap {

absl::StatusOr<AveragedWeights> AveragedWeights::Create(float decay, Tensor parameters,
                                                        Backend* backend) {
  const auto allocate = [&] {
    return AllocateTensor(backend, DType::kF32, parameters.rows, parameters.cols);
  };
  ASSIGN_OR_RETURN(const Tensor averages, allocate());
  ASSIGN_OR_RETURN(const Tensor trained, allocate());
  return AveragedWeights(decay, parameters, averages, trained, backend);
}

void AveragedWeights::Reset() {
  CHECK(!shown_);
  backend_->Copy(parameters_, averages_, /*add=*/false);
}

void AveragedWeights::Follow(Tensor control) {
  CHECK(!shown_);
  backend_->AverageStep(control, decay_, parameters_, averages_);
}

bool AveragedWeights::Show(bool averages) {
  if (averages == shown_) return false;
  if (averages) backend_->Copy(parameters_, trained_, /*add=*/false);
  backend_->Copy(averages ? averages_ : trained_, parameters_, /*add=*/false);
  shown_ = averages;
  return true;
}

}  // namespace satrap
