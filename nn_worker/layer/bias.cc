#include "nn_worker/layer/layers.h"

#include "common/base/status_macros.h"
#include "nn_worker/layer/shape.h"

namespace satrap {
namespace {

class BiasLayer final : public BackendLayer {
 public:
  absl::StatusOr<std::vector<SampleShape>> Infer(absl::Span<const SampleShape> inputs) override {
    RETURN_IF_ERROR(RequireOneInput(inputs));
    RETURN_IF_ERROR(RequireVectors(inputs));
    dim_ = inputs[0][0];
    return std::vector<SampleShape>{inputs[0]};
  }

  std::vector<ParameterSpec> parameters() const override { return {{"bias", 1, dim_}}; }

  absl::Status Bind(const LayerBinding& binding) override {
    backend_ = binding.backend;
    bias_ = binding.parameters[0];
    gradient_ = binding.gradients[0];
    return absl::OkStatus();
  }

  absl::Status Forward(const PassContext&, Tensors xs, Tensors ys) override {
    backend_->AddBias(xs[0], bias_, ys[0]);
    return absl::OkStatus();
  }

  absl::Status Backward(const PassContext&, Tensors, Tensors, Tensors dys,
                        GradientTargets dxs) override {
    backend_->ColumnSum(dys[0], gradient_);
    if (dxs[0].wanted()) backend_->Copy(dys[0], dxs[0].tensor, dxs[0].add);
    return absl::OkStatus();
  }

 private:
  int64_t dim_ = 0;
  Tensor bias_, gradient_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> NewBiasLayer() { return std::make_unique<BiasLayer>(); }

}  // namespace satrap
