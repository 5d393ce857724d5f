#include "nn_worker/layer/layers.h"

#include "common/base/status_macros.h"
#include "nn_worker/layer/shape.h"

namespace satrap {
namespace {

class AddLayer final : public BackendLayer {
 public:
  absl::StatusOr<std::vector<SampleShape>> Infer(absl::Span<const SampleShape> inputs) override {
    RETURN_IF_ERROR(RequireSomeInput(inputs));
    RETURN_IF_ERROR(RequireEqualShapes(inputs));
    return std::vector<SampleShape>{inputs[0]};
  }

  absl::Status Forward(const PassContext&, Tensors xs, Tensors ys) override {
    for (size_t i = 0; i < xs.size(); ++i) backend_->Copy(xs[i], ys[0], /*add=*/i > 0);
    return absl::OkStatus();
  }

  absl::Status Backward(const PassContext&, Tensors, Tensors, Tensors dys,
                        GradientTargets dxs) override {
    for (const GradientTarget& dx : dxs) {
      if (dx.wanted()) backend_->Copy(dys[0], dx.tensor, dx.add);
    }
    return absl::OkStatus();
  }
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> NewAddLayer() { return std::make_unique<AddLayer>(); }

}  // namespace satrap
