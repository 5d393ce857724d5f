#include "nn_worker/layer/layers.h"

#include "common/base/status_macros.h"
#include "nn_worker/backend/tensor_copy.h"
#include "nn_worker/layer/shape.h"

namespace satrap {
namespace {

class L2NormalizeLayer final : public BackendLayer {
 public:
  explicit L2NormalizeLayer(float epsilon) : epsilon_(epsilon) {}

  absl::StatusOr<std::vector<SampleShape>> Infer(absl::Span<const SampleShape> inputs) override {
    RETURN_IF_ERROR(RequireOneInput(inputs));
    if (inputs[0].back() < 1) return absl::InvalidArgumentError("takes at least one value");
    width_ = inputs[0].back();
    groups_ = ShapeSize(inputs[0]) / width_;
    return std::vector<SampleShape>{inputs[0]};
  }

  absl::Status Bind(const LayerBinding& binding) override {
    backend_ = binding.backend;
    ASSIGN_OR_RETURN(inverse_, AllocateTensor(backend_, DType::kF32, binding.max_samples, groups_));
    return absl::OkStatus();
  }

  absl::Status Forward(const PassContext&, Tensors xs, Tensors ys) override {
    backend_->Normalize(Normalization::kL2, xs[0], width_, epsilon_, ys[0],
                        inverse_.FirstRows(ys[0].rows));
    return absl::OkStatus();
  }

  absl::Status Backward(const PassContext&, Tensors, Tensors ys, Tensors dys,
                        GradientTargets dxs) override {
    backend_->NormalizeGrad(Normalization::kL2, ys[0], inverse_.FirstRows(ys[0].rows), dys[0],
                            width_, dxs[0]);
    return absl::OkStatus();
  }

 private:
  const float epsilon_;
  int64_t width_ = 0;
  int64_t groups_ = 0;
  Tensor inverse_;  // of the last Forward: 1 / root
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> NewL2NormalizeLayer(const L2NormalizeConfig& config) {
  return std::make_unique<L2NormalizeLayer>(config.epsilon());
}

}  // namespace satrap
