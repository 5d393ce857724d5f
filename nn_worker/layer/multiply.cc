#include "nn_worker/layer/layers.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "nn_worker/backend/tensor_copy.h"
#include "nn_worker/layer/shape.h"

namespace satrap {
namespace {

class MultiplyLayer final : public BackendLayer {
 public:
  absl::StatusOr<std::vector<SampleShape>> Infer(absl::Span<const SampleShape> inputs) override {
    if (inputs.size() != 2) {
      return absl::InvalidArgumentError(absl::StrCat("takes two inputs, got ", inputs.size()));
    }
    scaled_ = inputs[1] == SampleShape{1};
    if (!scaled_) RETURN_IF_ERROR(RequireEqualShapes(inputs));
    return std::vector<SampleShape>{inputs[0]};
  }

  absl::Status Bind(const LayerBinding& binding) override {
    backend_ = binding.backend;
    ASSIGN_OR_RETURN(dots_, AllocateTensor(backend_, DType::kF32, binding.max_samples, 1));
    return absl::OkStatus();
  }

  absl::Status Forward(const PassContext&, Tensors xs, Tensors ys) override {
    backend_->Multiply(xs[0], xs[1], ys[0], /*add=*/false);
    return absl::OkStatus();
  }

  absl::Status Backward(const PassContext&, Tensors xs, Tensors, Tensors dys,
                        GradientTargets dxs) override {
    if (dxs[0].wanted()) backend_->Multiply(dys[0], xs[1], dxs[0].tensor, dxs[0].add);
    if (!dxs[1].wanted()) return absl::OkStatus();
    if (!scaled_) {
      backend_->Multiply(dys[0], xs[0], dxs[1].tensor, dxs[1].add);
      return absl::OkStatus();
    }
    // The second input is one factor for the whole sample, so the factor's gradient is the dot
    // product of two vectors.
    const Tensor dots = dots_.FirstRows(dys[0].rows);
    backend_->PairDots({dys[0], xs[0]}, {{0, 0, 1, 0}}, dys[0].cols, dots);
    backend_->Copy(dots, dxs[1].tensor, dxs[1].add);
    return absl::OkStatus();
  }

 private:
  bool scaled_ = false;  // the second input is [1]
  Tensor dots_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> NewMultiplyLayer() {
  return std::make_unique<MultiplyLayer>();
}

}  // namespace satrap
