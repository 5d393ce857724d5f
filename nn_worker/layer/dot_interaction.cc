#include "nn_worker/layer/layers.h"

#include "common/base/status_macros.h"
#include "nn_worker/layer/fields.h"
#include "nn_worker/layer/shape.h"

namespace satrap {
namespace {

class DotInteractionLayer final : public BackendLayer {
 public:
  absl::StatusOr<std::vector<SampleShape>> Infer(absl::Span<const SampleShape> inputs) override {
    ASSIGN_OR_RETURN(fields_, FieldsOf(inputs, /*least=*/2));
    terms_ = AllPairs(fields_.count, PairOrder::kFirstAfterSecond);
    return std::vector<SampleShape>{{fields_.dim + static_cast<int64_t>(terms_.size())}};
  }

  int64_t ForwardFlops() const override {
    return 2 * fields_.dim * static_cast<int64_t>(terms_.size());
  }

  absl::Status Forward(const PassContext&, Tensors xs, Tensors ys) override {
    const std::vector<Tensor> views = FieldViews(fields_, xs);
    backend_->Copy(views[0], ys[0].Columns(0, fields_.dim), /*add=*/false);
    backend_->PairDots(views, terms_, fields_.dim, Dots(ys[0]));
    return absl::OkStatus();
  }

  absl::Status Backward(const PassContext&, Tensors xs, Tensors, Tensors dys,
                        GradientTargets dxs) override {
    const std::vector<GradientTarget> targets = FieldTargets(fields_, xs, dxs);
    backend_->PairDotsGrad(FieldViews(fields_, xs), terms_, fields_.dim, Dots(dys[0]), targets);
    if (targets[0].wanted()) {
      backend_->Copy(dys[0].Columns(0, fields_.dim), targets[0].tensor, /*add=*/true);
    }
    return absl::OkStatus();
  }

 private:
  // The columns after the first vector.
  Tensor Dots(const Tensor& y) const {
    return y.Columns(fields_.dim, static_cast<int64_t>(terms_.size()));
  }

  FieldShape fields_;
  std::vector<PairTerm> terms_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> NewDotInteractionLayer() {
  return std::make_unique<DotInteractionLayer>();
}

}  // namespace satrap
