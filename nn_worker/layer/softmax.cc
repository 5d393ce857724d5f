#include "nn_worker/layer/layers.h"

#include "common/base/status_macros.h"
#include "nn_worker/layer/shape.h"

namespace satrap {
namespace {

class SoftmaxLayer final : public BackendLayer {
 public:
  absl::StatusOr<std::vector<SampleShape>> Infer(absl::Span<const SampleShape> inputs) override {
    RETURN_IF_ERROR(RequireOneInput(inputs));
    if (inputs[0].back() < 1) return absl::InvalidArgumentError("takes at least one value");
    width_ = inputs[0].back();
    return std::vector<SampleShape>{inputs[0]};
  }

  absl::Status Forward(const PassContext&, Tensors xs, Tensors ys) override {
    backend_->Softmax(xs[0], width_, ys[0]);
    return absl::OkStatus();
  }

  absl::Status Backward(const PassContext&, Tensors, Tensors ys, Tensors dys,
                        GradientTargets dxs) override {
    backend_->SoftmaxGrad(ys[0], dys[0], width_, dxs[0]);
    return absl::OkStatus();
  }

 private:
  int64_t width_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> NewSoftmaxLayer() {
  return std::make_unique<SoftmaxLayer>();
}

}  // namespace satrap
