#include "nn_worker/layer/layers.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "nn_worker/backend/tensor_copy.h"
#include "nn_worker/layer/fields.h"
#include "nn_worker/layer/shape.h"

namespace satrap {
namespace {

class FieldAwareInteractionLayer final : public BackendLayer {
 public:
  absl::StatusOr<std::vector<SampleShape>> Infer(absl::Span<const SampleShape> inputs) override {
    ASSIGN_OR_RETURN(fields_, FieldsOf(inputs, /*least=*/2));
    if (fields_.dim % (fields_.count - 1) != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("each field must hold a vector for each of the ", fields_.count - 1,
                       " other fields, so its dim must be a multiple of ", fields_.count - 1,
                       ", got ", fields_.dim));
    }
    dim_ = fields_.dim / (fields_.count - 1);
    terms_.clear();
    for (int i = 0; i < fields_.count; ++i) {
      // A field has no vector for itself, so field i's vector for a later j is at place j - 1.
      for (int j = i + 1; j < fields_.count; ++j) {
        const int dim = static_cast<int>(dim_);
        terms_.push_back({i, (j - 1) * dim, j, i * dim});
      }
    }
    return std::vector<SampleShape>{{1}};
  }

  int64_t ForwardFlops() const override { return 2 * dim_ * static_cast<int64_t>(terms_.size()); }

  absl::Status Bind(const LayerBinding& binding) override {
    backend_ = binding.backend;
    ASSIGN_OR_RETURN(dots_, AllocateTensor(backend_, DType::kF32, binding.max_samples,
                                           static_cast<int64_t>(terms_.size())));
    return absl::OkStatus();
  }

  absl::Status Forward(const PassContext&, Tensors xs, Tensors ys) override {
    const Tensor dots = dots_.FirstRows(ys[0].rows);
    backend_->PairDots(FieldViews(fields_, xs), terms_, dim_, dots);
    backend_->RowSum({dots}, ys[0]);
    return absl::OkStatus();
  }

  absl::Status Backward(const PassContext&, Tensors xs, Tensors, Tensors dys,
                        GradientTargets dxs) override {
    const Tensor dots = dots_.FirstRows(dys[0].rows);
    backend_->RowSumGrad(dys[0], {{dots, /*add=*/false}});
    backend_->PairDotsGrad(FieldViews(fields_, xs), terms_, dim_, dots,
                           FieldTargets(fields_, xs, dxs));
    return absl::OkStatus();
  }

 private:
  FieldShape fields_;
  std::vector<PairTerm> terms_;
  int64_t dim_ = 0;  // of one of a field's vectors
  Tensor dots_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> NewFieldAwareInteractionLayer() {
  return std::make_unique<FieldAwareInteractionLayer>();
}

}  // namespace satrap
