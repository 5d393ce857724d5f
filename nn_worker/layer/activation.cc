#include "nn_worker/layer/layers.h"

#include "common/base/check.h"
#include "nn_worker/layer/shape.h"

namespace satrap {
namespace {

class ActivationLayer final : public BackendLayer {
 public:
  explicit ActivationLayer(Activation activation) : activation_(activation) {}

  absl::StatusOr<std::vector<SampleShape>> Infer(absl::Span<const SampleShape> inputs) override {
    if (absl::Status one = RequireOneInput(inputs); !one.ok()) return one;
    return std::vector<SampleShape>{inputs[0]};
  }

  absl::Status Forward(const PassContext&, Tensors xs, Tensors ys) override {
    backend_->Activate(activation_, xs[0], ys[0]);
    return absl::OkStatus();
  }

  absl::Status Backward(const PassContext&, Tensors, Tensors ys, Tensors dys,
                        GradientTargets dxs) override {
    if (dxs[0].wanted()) backend_->ActivateGrad(activation_, ys[0], dys[0], dxs[0]);
    return absl::OkStatus();
  }

 private:
  const Activation activation_;
};

}  // namespace

Activation ActivationOf(ActivationConfig::Kind kind) {
  switch (kind) {
    case ActivationConfig::LINEAR:
      return Activation::kLinear;
    case ActivationConfig::RELU:
      return Activation::kRelu;
    case ActivationConfig::SIGMOID:
      return Activation::kSigmoid;
    case ActivationConfig::TANH:
      return Activation::kTanh;
  }
  CHECK(false) << "no activation " << kind;
  return Activation::kLinear;
}

absl::StatusOr<std::unique_ptr<Layer>> NewActivationLayer(const ActivationLayerConfig& config) {
  return std::make_unique<ActivationLayer>(ActivationOf(config.kind()));
}

}  // namespace satrap
