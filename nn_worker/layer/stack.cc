#include "nn_worker/layer/layers.h"

#include "common/base/status_macros.h"
#include "nn_worker/layer/fields.h"
#include "nn_worker/layer/shape.h"

namespace satrap {
namespace {

class StackLayer final : public Layer {
 public:
  absl::StatusOr<std::vector<SampleShape>> Infer(absl::Span<const SampleShape> inputs) override {
    ASSIGN_OR_RETURN(const FieldShape fields, FieldsOf(inputs, /*least=*/1));
    return std::vector<SampleShape>{{fields.count, fields.dim}};
  }

  bool inputs_within_output() const override { return true; }

  absl::Status Bind(const LayerBinding& binding) override {
    backend_ = binding.backend;
    return absl::OkStatus();
  }

  absl::Status Forward(const PassContext&, absl::Span<const Tensor> xs,
                       absl::Span<const Tensor> ys) override {
    JoinColumns(backend_, xs, ys[0]);
    return absl::OkStatus();
  }

  absl::Status Backward(const PassContext&, absl::Span<const Tensor> xs, absl::Span<const Tensor>,
                        absl::Span<const Tensor> dys,
                        absl::Span<const GradientTarget> dxs) override {
    SplitColumns(backend_, xs, dys[0], dxs);
    return absl::OkStatus();
  }

 private:
  Backend* backend_ = nullptr;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> NewStackLayer() { return std::make_unique<StackLayer>(); }

}  // namespace satrap
