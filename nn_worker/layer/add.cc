#include "nn_worker/layer/layers.h"

#include "common/base/status_macros.h"
#include "nn_worker/layer/shape.h"

namespace satrap {
namespace {

class AddLayer final : public Layer {
 public:
  absl::StatusOr<std::vector<SampleShape>> Infer(absl::Span<const SampleShape> inputs) override {
    RETURN_IF_ERROR(RequireSomeInput(inputs));
    RETURN_IF_ERROR(RequireEqualShapes(inputs));
    return std::vector<SampleShape>{inputs[0]};
  }

  absl::Status Bind(const LayerBinding& binding) override {
    backend_ = binding.backend;
    return absl::OkStatus();
  }

  absl::Status Forward(const PassContext&, absl::Span<const Tensor> xs,
                       absl::Span<const Tensor> ys) override {
    for (size_t i = 0; i < xs.size(); ++i) backend_->Copy(xs[i], ys[0], /*add=*/i > 0);
    return absl::OkStatus();
  }

  absl::Status Backward(const PassContext&, absl::Span<const Tensor>, absl::Span<const Tensor>,
                        absl::Span<const Tensor> dys,
                        absl::Span<const GradientTarget> dxs) override {
    for (const GradientTarget& dx : dxs) {
      if (dx.wanted()) backend_->Copy(dys[0], dx.tensor, dx.add);
    }
    return absl::OkStatus();
  }

 private:
  Backend* backend_ = nullptr;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> NewAddLayer() { return std::make_unique<AddLayer>(); }

}  // namespace satrap
