#include "nn_worker/layer/layers.h"

#include "common/base/status_macros.h"
#include "nn_worker/layer/shape.h"

namespace satrap {
namespace {

class ScaleLayer final : public BackendLayer {
 public:
  explicit ScaleLayer(float factor) : factor_(factor) {}

  absl::StatusOr<std::vector<SampleShape>> Infer(absl::Span<const SampleShape> inputs) override {
    RETURN_IF_ERROR(RequireOneInput(inputs));
    return std::vector<SampleShape>{inputs[0]};
  }

  absl::Status Forward(const PassContext&, Tensors xs, Tensors ys) override {
    backend_->Scale(factor_, xs[0], ys[0], /*add=*/false);
    return absl::OkStatus();
  }

  absl::Status Backward(const PassContext&, Tensors, Tensors, Tensors dys,
                        GradientTargets dxs) override {
    if (dxs[0].wanted()) backend_->Scale(factor_, dys[0], dxs[0].tensor, dxs[0].add);
    return absl::OkStatus();
  }

 private:
  const float factor_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> NewScaleLayer(const ScaleConfig& config) {
  return std::make_unique<ScaleLayer>(config.factor());
}

}  // namespace satrap
