#include "nn_worker/layer/layers.h"

#include "common/base/status_macros.h"
#include "nn_worker/layer/shape.h"

namespace satrap {
namespace {

class TallyLayer final : public BackendLayer {
 public:
  explicit TallyLayer(float gradient) : gradient_(gradient) {}

  absl::StatusOr<std::vector<SampleShape>> Infer(absl::Span<const SampleShape> inputs) override {
    RETURN_IF_ERROR(RequireSomeInput(inputs));
    RETURN_IF_ERROR(RequireVectors(inputs));
    return std::vector<SampleShape>{{1}};
  }

  absl::Status Forward(const PassContext&, Tensors, Tensors ys) override {
    backend_->Fill(ys[0], 0);
    return absl::OkStatus();
  }

  absl::Status Backward(const PassContext&, Tensors, Tensors, Tensors dys,
                        GradientTargets dxs) override {
    // The incoming gradient is not needed, so its memory holds the constant.
    backend_->Fill(dys[0], gradient_);
    backend_->RowSumGrad(dys[0], dxs);
    return absl::OkStatus();
  }

 private:
  const float gradient_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> NewTallyLayer(const TallyConfig& config) {
  return std::make_unique<TallyLayer>(config.gradient());
}

}  // namespace satrap
