#include "nn_worker/layer/layers.h"

#include "common/base/status_macros.h"
#include "nn_worker/backend/tensor_copy.h"
#include "nn_worker/layer/fields.h"
#include "nn_worker/layer/shape.h"

namespace satrap {
namespace {

class BiInteractionLayer final : public BackendLayer {
 public:
  absl::StatusOr<std::vector<SampleShape>> Infer(absl::Span<const SampleShape> inputs) override {
    ASSIGN_OR_RETURN(fields_, FieldsOf(inputs, /*least=*/1));
    return std::vector<SampleShape>{{fields_.dim}};
  }

  int64_t ForwardFlops() const override { return 3 * fields_.count * fields_.dim; }

  absl::Status Bind(const LayerBinding& binding) override {
    backend_ = binding.backend;
    ASSIGN_OR_RETURN(sums_,
                     AllocateTensor(backend_, DType::kF32, binding.max_samples, fields_.dim));
    return absl::OkStatus();
  }

  absl::Status Forward(const PassContext&, Tensors xs, Tensors ys) override {
    backend_->BiInteraction(FieldViews(fields_, xs), sums_.FirstRows(ys[0].rows), ys[0]);
    return absl::OkStatus();
  }

  absl::Status Backward(const PassContext&, Tensors xs, Tensors, Tensors dys,
                        GradientTargets dxs) override {
    backend_->BiInteractionGrad(FieldViews(fields_, xs), sums_.FirstRows(dys[0].rows), dys[0],
                                FieldTargets(fields_, xs, dxs));
    return absl::OkStatus();
  }

 private:
  FieldShape fields_;
  Tensor sums_;  // sum_f v_f of the last Forward
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> NewBiInteractionLayer() {
  return std::make_unique<BiInteractionLayer>();
}

}  // namespace satrap
