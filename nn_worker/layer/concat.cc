#include "nn_worker/layer/layers.h"

#include "common/base/status_macros.h"
#include "nn_worker/layer/shape.h"

namespace satrap {
namespace {

class ConcatLayer final : public Layer {
 public:
  absl::StatusOr<std::vector<SampleShape>> Infer(absl::Span<const SampleShape> inputs) override {
    RETURN_IF_ERROR(RequireSomeInput(inputs));
    RETURN_IF_ERROR(RequireVectors(inputs));
    int64_t dim = 0;
    for (const SampleShape& input : inputs) dim += input[0];
    return std::vector<SampleShape>{{dim}};
  }

  bool inputs_within_output() const override { return true; }

  absl::Status Bind(const LayerBinding& binding) override {
    backend_ = binding.backend;
    return absl::OkStatus();
  }

  // Copy does nothing for an input that the graph has placed within y.
  absl::Status Forward(const PassContext&, absl::Span<const Tensor> xs,
                       absl::Span<const Tensor> ys) override {
    int64_t begin = 0;
    for (const Tensor& x : xs) {
      if (x.cols > 0) backend_->Copy(x, ys[0].Columns(begin, x.cols), /*add=*/false);
      begin += x.cols;
    }
    return absl::OkStatus();
  }

  absl::Status Backward(const PassContext&, absl::Span<const Tensor> xs, absl::Span<const Tensor>,
                        absl::Span<const Tensor> dys,
                        absl::Span<const GradientTarget> dxs) override {
    int64_t begin = 0;
    for (size_t i = 0; i < xs.size(); ++i) {
      if (dxs[i].wanted() && xs[i].cols > 0) {
        backend_->Copy(dys[0].Columns(begin, xs[i].cols), dxs[i].tensor, dxs[i].add);
      }
      begin += xs[i].cols;
    }
    return absl::OkStatus();
  }

 private:
  Backend* backend_ = nullptr;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> NewConcatLayer() { return std::make_unique<ConcatLayer>(); }

}  // namespace satrap
