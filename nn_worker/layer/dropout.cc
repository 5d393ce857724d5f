#include "nn_worker/layer/layers.h"

#include "nn_worker/layer/shape.h"

namespace satrap {
namespace {

class DropoutLayer final : public BackendLayer {
 public:
  explicit DropoutLayer(float rate) : rate_(rate) {}

  absl::StatusOr<std::vector<SampleShape>> Infer(absl::Span<const SampleShape> inputs) override {
    if (absl::Status one = RequireOneInput(inputs); !one.ok()) return one;
    return std::vector<SampleShape>{inputs[0]};
  }

  absl::Status Bind(const LayerBinding& binding) override {
    backend_ = binding.backend;
    seed_ = binding.seed;
    pass_numbers_ = binding.pass_numbers;
    return absl::OkStatus();
  }

  absl::Status Forward(const PassContext& pass, Tensors xs, Tensors ys) override {
    if (pass.training) {
      Mask(pass, xs[0], ys[0], /*add=*/false);
    } else {
      backend_->Copy(xs[0], ys[0], /*add=*/false);
    }
    return absl::OkStatus();
  }

  // The mask is computed again, because that costs less than storing and reading it.
  absl::Status Backward(const PassContext& pass, Tensors, Tensors, Tensors dys,
                        GradientTargets dxs) override {
    if (dxs[0].wanted()) Mask(pass, dys[0], dxs[0].tensor, dxs[0].add);
    return absl::OkStatus();
  }

 private:
  void Mask(const PassContext& pass, Tensor x, Tensor y, bool add) {
    backend_->Dropout(x, {seed_, pass.numbers(), pass_numbers_}, rate_, y, add);
  }

  const float rate_;
  uint64_t seed_ = 0;
  Tensor pass_numbers_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> NewDropoutLayer(const DropoutConfig& config) {
  return std::make_unique<DropoutLayer>(config.rate());
}

}  // namespace satrap
