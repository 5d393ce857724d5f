#include "nn_worker/layer/layers.h"

#include "common/base/status_macros.h"
#include "nn_worker/layer/shape.h"

namespace satrap {
namespace {

class TallyLayer final : public Layer {
 public:
  explicit TallyLayer(float gradient) : gradient_(gradient) {}

  absl::StatusOr<std::vector<SampleShape>> Infer(absl::Span<const SampleShape> inputs) override {
    RETURN_IF_ERROR(RequireSomeInput(inputs));
    RETURN_IF_ERROR(RequireVectors(inputs));
    return std::vector<SampleShape>{{1}};
  }

  absl::Status Bind(const LayerBinding& binding) override {
    backend_ = binding.backend;
    return absl::OkStatus();
  }

  absl::Status Forward(const PassContext&, absl::Span<const Tensor>,
                       absl::Span<const Tensor> ys) override {
    backend_->Fill(ys[0], 0);
    return absl::OkStatus();
  }

  absl::Status Backward(const PassContext&, absl::Span<const Tensor>, absl::Span<const Tensor>,
                        absl::Span<const Tensor> dys,
                        absl::Span<const GradientTarget> dxs) override {
    // The incoming gradient is not needed, so its memory holds the constant.
    backend_->Fill(dys[0], gradient_);
    backend_->RowSumGrad(dys[0], dxs);
    return absl::OkStatus();
  }

 private:
  const float gradient_;
  Backend* backend_ = nullptr;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> NewTallyLayer(const TallyConfig& config) {
  return std::make_unique<TallyLayer>(config.gradient());
}

}  // namespace satrap
