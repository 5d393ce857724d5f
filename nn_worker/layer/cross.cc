#include "nn_worker/layer/layers.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "nn_worker/backend/tensor_copy.h"
#include "nn_worker/layer/shape.h"

namespace satrap {
namespace {

class CrossLayer final : public BackendLayer {
 public:
  absl::StatusOr<std::vector<SampleShape>> Infer(absl::Span<const SampleShape> inputs) override {
    if (inputs.size() != 2) {
      return absl::InvalidArgumentError(absl::StrCat("takes two inputs, got ", inputs.size()));
    }
    RETURN_IF_ERROR(RequireVectors(inputs));
    RETURN_IF_ERROR(RequireEqualShapes(inputs));
    if (inputs[0][0] < 1) return absl::InvalidArgumentError("takes at least one value");
    dim_ = inputs[0][0];
    return std::vector<SampleShape>{inputs[0]};
  }

  std::vector<ParameterSpec> parameters() const override {
    const double stddev = std::sqrt(2.0 / static_cast<double>(dim_ + 1));
    return {{"weight", dim_, 1, ParameterSpec::Initial::kNormal, stddev}, {"bias", 1, dim_}};
  }

  absl::Status Bind(const LayerBinding& binding) override {
    backend_ = binding.backend;
    weight_ = binding.parameters[0];
    bias_ = binding.parameters[1];
    weight_gradient_ = binding.gradients[0];
    bias_gradient_ = binding.gradients[1];
    for (Tensor* column : {&score_, &score_gradient_}) {
      ASSIGN_OR_RETURN(*column, AllocateTensor(backend_, DType::kF32, binding.max_samples, 1));
    }
    return absl::OkStatus();
  }

  absl::Status Forward(const PassContext&, Tensors xs, Tensors ys) override {
    const Tensor score = score_.FirstRows(ys[0].rows);
    backend_->Linear(xs[1], weight_, Tensor(), Activation::kLinear, score);
    backend_->AddBias(xs[1], bias_, ys[0]);
    backend_->Multiply(xs[0], score, ys[0], /*add=*/true);
    return absl::OkStatus();
  }

  absl::Status Backward(const PassContext&, Tensors xs, Tensors, Tensors dys,
                        GradientTargets dxs) override {
    // G = dy, s = w . x_l: c = G . x_0; db = G; dx_0 = s G; dw = c x_l; dx_l = G + c w.
    const Tensor score = score_.FirstRows(dys[0].rows);
    const Tensor dscore = score_gradient_.FirstRows(dys[0].rows);
    backend_->PairDots({dys[0], xs[0]}, {{0, 0, 1, 0}}, dim_, dscore);
    backend_->ColumnSum(dys[0], bias_gradient_);
    if (dxs[0].wanted()) backend_->Multiply(dys[0], score, dxs[0].tensor, dxs[0].add);
    if (dxs[1].wanted()) backend_->Copy(dys[0], dxs[1].tensor, dxs[1].add);
    LinearGradArgs args;
    args.x = xs[1];
    args.w = weight_;
    args.y = score;
    args.dy = dscore;
    args.dx = {dxs[1].tensor, /*add=*/true};
    args.dw = weight_gradient_;
    backend_->LinearGrad(args);
    return absl::OkStatus();
  }

 private:
  int64_t dim_ = 0;
  Tensor weight_, bias_, weight_gradient_, bias_gradient_;
  Tensor score_;  // w . x_l of the last Forward
  Tensor score_gradient_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> NewCrossLayer(const CrossConfig& config) {
  if (config.layers() != 1) {
    return absl::InvalidArgumentError(
        "is a composite unless its field `layers` is 1: the graph expands it");
  }
  return std::make_unique<CrossLayer>();
}

}  // namespace satrap
