#include "nn_worker/layer/layers.h"

#include "common/base/status_macros.h"
#include "nn_worker/backend/tensor_copy.h"
#include "nn_worker/layer/shape.h"

namespace satrap {
namespace {

class LayerNormLayer final : public BackendLayer {
 public:
  explicit LayerNormLayer(float epsilon) : epsilon_(epsilon) {}

  absl::StatusOr<std::vector<SampleShape>> Infer(absl::Span<const SampleShape> inputs) override {
    RETURN_IF_ERROR(RequireOneInput(inputs));
    if (inputs[0].back() < 1) return absl::InvalidArgumentError("takes at least one value");
    width_ = inputs[0].back();
    groups_ = ShapeSize(inputs[0]) / width_;
    return std::vector<SampleShape>{inputs[0]};
  }

  std::vector<ParameterSpec> parameters() const override {
    const auto constant = ParameterSpec::Initial::kConstant;
    return {{"gamma", 1, width_, constant, 1}, {"beta", 1, width_, constant, 0}};
  }

  absl::Status Bind(const LayerBinding& binding) override {
    backend_ = binding.backend;
    gamma_ = binding.parameters[0];
    beta_ = binding.parameters[1];
    gamma_gradient_ = binding.gradients[0];
    beta_gradient_ = binding.gradients[1];
    const int64_t cols = groups_ * width_;
    for (Tensor* values : {&normalized_, &product_}) {
      ASSIGN_OR_RETURN(*values, AllocateTensor(backend_, DType::kF32, binding.max_samples, cols));
    }
    ASSIGN_OR_RETURN(inverse_, AllocateTensor(backend_, DType::kF32, binding.max_samples, groups_));
    ASSIGN_OR_RETURN(sums_, AllocateTensor(backend_, DType::kF32, 1, cols));
    return absl::OkStatus();
  }

  absl::Status Forward(const PassContext&, Tensors xs, Tensors ys) override {
    const int64_t n = ys[0].rows;
    backend_->Normalize(Normalization::kLayer, xs[0], width_, epsilon_, normalized_.FirstRows(n),
                        inverse_.FirstRows(n));
    backend_->Multiply(normalized_.FirstRows(n), gamma_, product_.FirstRows(n), /*add=*/false);
    if (!ys[0].has_gaps()) {
      backend_->AddBias(Groups(product_.FirstRows(n)), beta_, Groups(ys[0]));
      return absl::OkStatus();
    }
    for (int64_t c = 0; c < ys[0].cols; c += width_) {
      backend_->AddBias(product_.FirstRows(n).Columns(c, width_), beta_, ys[0].Columns(c, width_));
    }
    return absl::OkStatus();
  }

  absl::Status Backward(const PassContext&, Tensors, Tensors, Tensors dys,
                        GradientTargets dxs) override {
    const int64_t n = dys[0].rows;
    const Tensor product = product_.FirstRows(n);
    // Sums each group over the samples, and then sums the groups.
    backend_->ColumnSum(dys[0], sums_);
    backend_->ColumnSum(Groups(sums_), beta_gradient_);
    backend_->Multiply(dys[0], normalized_.FirstRows(n), product, /*add=*/false);
    backend_->ColumnSum(product, sums_);
    backend_->ColumnSum(Groups(sums_), gamma_gradient_);
    backend_->Multiply(dys[0], gamma_, product, /*add=*/false);
    backend_->NormalizeGrad(Normalization::kLayer, normalized_.FirstRows(n), inverse_.FirstRows(n),
                            product, width_, dxs[0]);
    return absl::OkStatus();
  }

 private:
  // A view in which each group of each row is a row. REQUIRES: no gaps
  Tensor Groups(const Tensor& x) const { return x.Reshaped(x.rows * groups_, width_); }

  const float epsilon_;
  int64_t width_ = 0;
  int64_t groups_ = 0;
  Tensor gamma_, beta_, gamma_gradient_, beta_gradient_;
  Tensor normalized_, inverse_;  // of the last Forward, as Backend::Normalize
  Tensor product_, sums_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> NewLayerNormLayer(const LayerNormConfig& config) {
  return std::make_unique<LayerNormLayer>(config.epsilon());
}

}  // namespace satrap
