#include "nn_worker/layer/layers.h"

#include "common/base/status_macros.h"
#include "nn_worker/backend/tensor_copy.h"
#include "nn_worker/layer/shape.h"

namespace satrap {
namespace {

class FmLayer final : public BackendLayer {
 public:
  absl::StatusOr<std::vector<SampleShape>> Infer(absl::Span<const SampleShape> inputs) override {
    RETURN_IF_ERROR(RequireSomeInput(inputs));
    RETURN_IF_ERROR(RequireVectors(inputs));
    RETURN_IF_ERROR(RequireEqualShapes(inputs));
    dim_ = inputs[0][0];
    return std::vector<SampleShape>{{1}};
  }

  absl::Status Bind(const LayerBinding& binding) override {
    backend_ = binding.backend;
    ASSIGN_OR_RETURN(sums_, AllocateTensor(backend_, DType::kF32, binding.max_samples, dim_));
    return absl::OkStatus();
  }

  absl::Status Forward(const PassContext&, Tensors xs, Tensors ys) override {
    backend_->Fm(xs, sums_.FirstRows(ys[0].rows), ys[0]);
    return absl::OkStatus();
  }

  absl::Status Backward(const PassContext&, Tensors xs, Tensors, Tensors dys,
                        GradientTargets dxs) override {
    backend_->FmGrad(xs, sums_.FirstRows(dys[0].rows), dys[0], dxs);
    return absl::OkStatus();
  }

 private:
  int64_t dim_ = 0;
  Tensor sums_;  // sum_f x_f of the last Forward
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> NewFmLayer() { return std::make_unique<FmLayer>(); }

}  // namespace satrap
