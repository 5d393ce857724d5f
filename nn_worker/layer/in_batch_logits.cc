#include "nn_worker/layer/layers.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "nn_worker/backend/tensor_copy.h"
#include "nn_worker/layer/score_product.h"
#include "nn_worker/layer/shape.h"

namespace satrap {
namespace {

class InBatchLogitsLayer final : public BackendLayer {
 public:
  explicit InBatchLogitsLayer(const InBatchLogitsConfig& config) : config_(config) {}

  absl::StatusOr<std::vector<SampleShape>> Infer(absl::Span<const SampleShape> inputs) override {
    if (inputs.size() != 2) {
      return absl::InvalidArgumentError(
          absl::StrCat("takes a user and an item, got ", inputs.size(), " inputs"));
    }
    RETURN_IF_ERROR(RequireVectors(inputs));
    RETURN_IF_ERROR(RequireEqualShapes(inputs));
    dim_ = inputs[0][0];
    return std::vector<SampleShape>{{kSamplesOfPart}};
  }

  // Counts one column of the output, because the number of columns depends on the part.
  int64_t ForwardFlops() const override { return 2 * dim_; }

  absl::Status Bind(const LayerBinding& binding) override {
    backend_ = binding.backend;
    for (Tensor* scratch : {&users_, &dusers_}) {
      ASSIGN_OR_RETURN(*scratch, AllocateTensor(backend_, DType::kF32, binding.max_samples, dim_));
    }
    return product_.Bind(backend_, binding.max_samples, dim_);
  }

  absl::Status Forward(const PassContext&, Tensors xs, Tensors ys) override {
    const int64_t samples = ys[0].rows;
    if (samples == 0) return absl::OkStatus();
    const Tensor users = users_.FirstRows(samples);
    backend_->Scale(config_.scale(), xs[0], users, /*add=*/false);
    product_.Forward(users, xs[1], Tensor(), ys[0].Columns(0, samples));
    return absl::OkStatus();
  }

  absl::Status Backward(const PassContext&, Tensors, Tensors ys, Tensors dys,
                        GradientTargets dxs) override {
    const int64_t samples = ys[0].rows;
    if (samples == 0) return absl::OkStatus();
    const Tensor dusers = dusers_.FirstRows(samples);
    product_.Backward(users_.FirstRows(samples), ys[0].Columns(0, samples),
                      dys[0].Columns(0, samples), {dusers, false}, dxs[1], GradientTarget());
    if (dxs[0].wanted()) backend_->Scale(config_.scale(), dusers, dxs[0].tensor, dxs[0].add);
    return absl::OkStatus();
  }

 private:
  const InBatchLogitsConfig config_;
  int64_t dim_ = 0;
  ScoreProduct product_;
  Tensor users_, dusers_;  // times the scale
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> NewInBatchLogitsLayer(const InBatchLogitsConfig& config) {
  return std::make_unique<InBatchLogitsLayer>(config);
}

}  // namespace satrap
