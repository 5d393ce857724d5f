#include "nn_worker/layer/layers.h"

#include "common/base/status_macros.h"
#include "nn_worker/layer/shape.h"

namespace satrap {
namespace {

class SumLayer final : public BackendLayer {
 public:
  absl::StatusOr<std::vector<SampleShape>> Infer(absl::Span<const SampleShape> inputs) override {
    RETURN_IF_ERROR(RequireSomeInput(inputs));
    RETURN_IF_ERROR(RequireVectors(inputs));
    return std::vector<SampleShape>{{1}};
  }

  absl::Status Forward(const PassContext&, Tensors xs, Tensors ys) override {
    backend_->RowSum(xs, ys[0]);
    return absl::OkStatus();
  }

  absl::Status Backward(const PassContext&, Tensors, Tensors, Tensors dys,
                        GradientTargets dxs) override {
    backend_->RowSumGrad(dys[0], dxs);
    return absl::OkStatus();
  }
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> NewSumLayer() { return std::make_unique<SumLayer>(); }

}  // namespace satrap
