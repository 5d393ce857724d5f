#include "nn_worker/layer/layers.h"

#include "common/base/status_macros.h"
#include "nn_worker/layer/shape.h"

namespace satrap {
namespace {

class SoftmaxLayer final : public Layer {
 public:
  absl::StatusOr<std::vector<SampleShape>> Infer(absl::Span<const SampleShape> inputs) override {
    RETURN_IF_ERROR(RequireOneInput(inputs));
    if (inputs[0].back() < 1) return absl::InvalidArgumentError("takes at least one value");
    width_ = inputs[0].back();
    return std::vector<SampleShape>{inputs[0]};
  }

  absl::Status Bind(const LayerBinding& binding) override {
    backend_ = binding.backend;
    return absl::OkStatus();
  }

  absl::Status Forward(const PassContext&, absl::Span<const Tensor> xs,
                       absl::Span<const Tensor> ys) override {
    backend_->Softmax(xs[0], width_, ys[0]);
    return absl::OkStatus();
  }

  absl::Status Backward(const PassContext&, absl::Span<const Tensor>, absl::Span<const Tensor> ys,
                        absl::Span<const Tensor> dys,
                        absl::Span<const GradientTarget> dxs) override {
    backend_->SoftmaxGrad(ys[0], dys[0], width_, dxs[0]);
    return absl::OkStatus();
  }

 private:
  int64_t width_ = 0;
  Backend* backend_ = nullptr;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> NewSoftmaxLayer() {
  return std::make_unique<SoftmaxLayer>();
}

}  // namespace satrap
