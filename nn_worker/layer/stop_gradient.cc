#include "nn_worker/layer/layers.h"

#include "common/base/status_macros.h"
#include "nn_worker/layer/shape.h"

namespace satrap {
namespace {

class StopGradientLayer final : public Layer {
 public:
  absl::StatusOr<std::vector<SampleShape>> Infer(absl::Span<const SampleShape> inputs) override {
    RETURN_IF_ERROR(RequireOneInput(inputs));
    return std::vector<SampleShape>{inputs[0]};
  }

  bool stops_gradient() const override { return true; }

  absl::Status Bind(const LayerBinding& binding) override {
    backend_ = binding.backend;
    return absl::OkStatus();
  }

  absl::Status Forward(const PassContext&, absl::Span<const Tensor> xs,
                       absl::Span<const Tensor> ys) override {
    backend_->Copy(xs[0], ys[0], /*add=*/false);
    return absl::OkStatus();
  }

  // The graph does not call this function; a caller that does gets the zeros that the layer
  // promises.
  absl::Status Backward(const PassContext&, absl::Span<const Tensor>, absl::Span<const Tensor>,
                        absl::Span<const Tensor>, absl::Span<const GradientTarget> dxs) override {
    if (dxs[0].wanted() && !dxs[0].add) backend_->Fill(dxs[0].tensor, 0);
    return absl::OkStatus();
  }

 private:
  Backend* backend_ = nullptr;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> NewStopGradientLayer() {
  return std::make_unique<StopGradientLayer>();
}

}  // namespace satrap
