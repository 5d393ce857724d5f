#include "nn_worker/layer/layers.h"

#include <cmath>

#include "common/base/status_macros.h"
#include "nn_worker/layer/shape.h"

namespace satrap {
namespace {

class LinearLayer final : public BackendLayer {
 public:
  explicit LinearLayer(const LinearConfig& config)
      : config_(config), activation_(ActivationOf(config.activation())) {}

  absl::StatusOr<std::vector<SampleShape>> Infer(absl::Span<const SampleShape> inputs) override {
    if (absl::Status one = RequireOneInput(inputs); !one.ok()) return one;
    if (absl::Status vectors = RequireVectors(inputs); !vectors.ok()) return vectors;
    in_ = inputs[0][0];
    return std::vector<SampleShape>{{config_.units()}};
  }

  std::vector<ParameterSpec> parameters() const override {
    std::vector<ParameterSpec> specs = {Weight()};
    if (config_.bias()) specs.push_back(Bias());
    return specs;
  }

  absl::Status Bind(const LayerBinding& binding) override {
    backend_ = binding.backend;
    const bool has_copy = !binding.copies.empty() && !binding.copies[0].empty();
    weight_ = has_copy ? binding.copies[0] : binding.parameters[0];
    weight_gradient_ = binding.gradients[0];
    if (config_.bias()) {
      // Scores are F32 in every precision, and so is their bias.
      const bool rounded =
          has_copy && !binding.copies[1].empty() && binding.copies[1].dtype == binding.ys[0].dtype;
      bias_ = rounded ? binding.copies[1] : binding.parameters[1];
      bias_gradient_ = binding.gradients[1];
    }
    const LinearSpec spec = {ArgsOf(binding.xs[0], binding.ys[0], binding.dys[0], binding.dxs[0]),
                             bias_, binding.input_relu};
    ASSIGN_OR_RETURN(prepared_, backend_->PrepareLinear(spec));
    return absl::OkStatus();
  }

  bool multiplies_padding() const override { return true; }
  PreparedLinear* relu_product() const override {
    return activation_ == Activation::kRelu ? prepared_.get() : nullptr;
  }

  absl::Status Forward(const PassContext&, Tensors xs, Tensors ys) override {
    backend_->LinearForward(prepared_.get(), xs[0], weight_, bias_, ys[0]);
    return absl::OkStatus();
  }

  absl::Status Backward(const PassContext&, Tensors xs, Tensors ys, Tensors dys,
                        GradientTargets dxs) override {
    backend_->LinearBackward(prepared_.get(), ArgsOf(xs[0], ys[0], dys[0], dxs[0]));
    return absl::OkStatus();
  }

 private:
  LinearGradArgs ArgsOf(const Tensor& x, const Tensor& y, const Tensor& dy,
                        const GradientTarget& dx) const {
    return {x, weight_, activation_, y, dy, dx, weight_gradient_, bias_gradient_};
  }

  // Glorot and Bengio (2010): a normal or a uniform distribution with variance 2 / (in + out).
  ParameterSpec Weight() const {
    ParameterSpec spec{"weight", in_, config_.units()};
    spec.in_products = true;
    const double fan = static_cast<double>(in_ + config_.units());
    switch (config_.initializer()) {
      case LinearConfig::XAVIER_NORMAL:
        spec.initial = ParameterSpec::Initial::kNormal;
        spec.scale = std::sqrt(2.0 / fan);
        break;
      case LinearConfig::XAVIER_UNIFORM:
        spec.initial = ParameterSpec::Initial::kUniform;
        spec.scale = std::sqrt(6.0 / fan);
        break;
      case LinearConfig::TORCH_DEFAULT:
        spec.initial = ParameterSpec::Initial::kUniform;
        spec.scale = TorchBound();
        break;
      case LinearConfig::ZERO:
        break;
    }
    return spec;
  }

  ParameterSpec Bias() const {
    ParameterSpec spec{"bias", 1, config_.units()};
    spec.added_to_products = true;
    if (config_.initializer() == LinearConfig::TORCH_DEFAULT) {
      spec.initial = ParameterSpec::Initial::kUniform;
      spec.scale = TorchBound();
    }
    return spec;
  }

  double TorchBound() const { return in_ == 0 ? 0 : 1.0 / std::sqrt(static_cast<double>(in_)); }

  const LinearConfig config_;
  const Activation activation_;
  int64_t in_ = 0;
  Tensor weight_, weight_gradient_, bias_, bias_gradient_;
  std::unique_ptr<PreparedLinear> prepared_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> NewLinearLayer(const LinearConfig& config) {
  return std::make_unique<LinearLayer>(config);
}

}  // namespace satrap
