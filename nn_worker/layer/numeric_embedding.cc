#include "nn_worker/layer/layers.h"

#include "common/base/status_macros.h"
#include "nn_worker/layer/shape.h"

namespace satrap {
namespace {

class NumericEmbeddingLayer final : public BackendLayer {
 public:
  explicit NumericEmbeddingLayer(const NumericEmbeddingConfig& config) : config_(config) {}

  absl::StatusOr<std::vector<SampleShape>> Infer(absl::Span<const SampleShape> inputs) override {
    RETURN_IF_ERROR(RequireOneInput(inputs));
    RETURN_IF_ERROR(RequireVectors(inputs));
    if (inputs[0][0] < 1) return absl::InvalidArgumentError("takes at least one numeric");
    columns_ = inputs[0][0];
    return std::vector<SampleShape>{{columns_, config_.dim()}};
  }

  std::vector<ParameterSpec> parameters() const override {
    return {{"weight", columns_, config_.dim(), ParameterSpec::Initial::kNormal, config_.stddev()}};
  }

  absl::Status Bind(const LayerBinding& binding) override {
    backend_ = binding.backend;
    weight_ = binding.parameters[0];
    weight_gradient_ = binding.gradients[0];
    return absl::OkStatus();
  }

  // Works column by column. Each column is a product with one input, whose weight is the column's
  // vector.
  absl::Status Forward(const PassContext&, Tensors xs, Tensors ys) override {
    for (int64_t c = 0; c < columns_; ++c) {
      backend_->Linear(xs[0].Columns(c, 1), weight_.Rows(c, 1), Tensor(), Activation::kLinear,
                       VectorOf(ys[0], c));
    }
    return absl::OkStatus();
  }

  absl::Status Backward(const PassContext&, Tensors xs, Tensors ys, Tensors dys,
                        GradientTargets dxs) override {
    for (int64_t c = 0; c < columns_; ++c) {
      LinearGradArgs args;
      args.x = xs[0].Columns(c, 1);
      args.w = weight_.Rows(c, 1);
      args.y = VectorOf(ys[0], c);
      args.dy = VectorOf(dys[0], c);
      if (dxs[0].wanted()) args.dx = {dxs[0].tensor.Columns(c, 1), dxs[0].add};
      args.dw = weight_gradient_.Rows(c, 1);
      backend_->LinearGrad(args);
    }
    return absl::OkStatus();
  }

 private:
  Tensor VectorOf(const Tensor& y, int64_t column) const {
    return y.Columns(column * config_.dim(), config_.dim());
  }

  const NumericEmbeddingConfig config_;
  int64_t columns_ = 0;
  Tensor weight_, weight_gradient_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> NewNumericEmbeddingLayer(
    const NumericEmbeddingConfig& config) {
  return std::make_unique<NumericEmbeddingLayer>(config);
}

}  // namespace satrap
