#include "nn_worker/layer/layers.h"

#include "common/base/status_macros.h"
#include "nn_worker/layer/shape.h"

namespace satrap {
namespace {

class SumLayer final : public Layer {
 public:
  absl::StatusOr<std::vector<SampleShape>> Infer(absl::Span<const SampleShape> inputs) override {
    RETURN_IF_ERROR(RequireSomeInput(inputs));
    RETURN_IF_ERROR(RequireVectors(inputs));
    return std::vector<SampleShape>{{1}};
  }

  absl::Status Bind(const LayerBinding& binding) override {
    backend_ = binding.backend;
    return absl::OkStatus();
  }

  absl::Status Forward(const PassContext&, absl::Span<const Tensor> xs,
                       absl::Span<const Tensor> ys) override {
    backend_->RowSum(xs, ys[0]);
    return absl::OkStatus();
  }

  absl::Status Backward(const PassContext&, absl::Span<const Tensor>, absl::Span<const Tensor>,
                        absl::Span<const Tensor> dys,
                        absl::Span<const GradientTarget> dxs) override {
    backend_->RowSumGrad(dys[0], dxs);
    return absl::OkStatus();
  }

 private:
  Backend* backend_ = nullptr;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> NewSumLayer() { return std::make_unique<SumLayer>(); }

}  // namespace satrap
