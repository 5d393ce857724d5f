#include "nn_worker/layer/layers.h"

#include "common/base/status_macros.h"
#include "nn_worker/layer/shape.h"

namespace satrap {
namespace {

class StopGradientLayer final : public BackendLayer {
 public:
  absl::StatusOr<std::vector<SampleShape>> Infer(absl::Span<const SampleShape> inputs) override {
    RETURN_IF_ERROR(RequireOneInput(inputs));
    return std::vector<SampleShape>{inputs[0]};
  }

  bool stops_gradient() const override { return true; }

  absl::Status Forward(const PassContext&, Tensors xs, Tensors ys) override {
    backend_->Copy(xs[0], ys[0], /*add=*/false);
    return absl::OkStatus();
  }

  // The graph never calls this, but other callers get the zeros that the layer promises.
  absl::Status Backward(const PassContext&, Tensors, Tensors, Tensors,
                        GradientTargets dxs) override {
    if (dxs[0].wanted() && !dxs[0].add) backend_->Fill(dxs[0].tensor, 0);
    return absl::OkStatus();
  }
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> NewStopGradientLayer() {
  return std::make_unique<StopGradientLayer>();
}

}  // namespace satrap
