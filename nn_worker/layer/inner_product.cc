#include "nn_worker/layer/layers.h"

#include "common/base/status_macros.h"
#include "nn_worker/layer/fields.h"
#include "nn_worker/layer/shape.h"

namespace satrap {
namespace {

class InnerProductLayer final : public BackendLayer {
 public:
  absl::StatusOr<std::vector<SampleShape>> Infer(absl::Span<const SampleShape> inputs) override {
    ASSIGN_OR_RETURN(fields_, FieldsOf(inputs, /*least=*/2));
    terms_ = AllPairs(fields_.count, PairOrder::kSecondAfterFirst);
    return std::vector<SampleShape>{{static_cast<int64_t>(terms_.size())}};
  }

  int64_t ForwardFlops() const override {
    return 2 * fields_.dim * static_cast<int64_t>(terms_.size());
  }

  absl::Status Forward(const PassContext&, Tensors xs, Tensors ys) override {
    backend_->PairDots(FieldViews(fields_, xs), terms_, fields_.dim, ys[0]);
    return absl::OkStatus();
  }

  absl::Status Backward(const PassContext&, Tensors xs, Tensors, Tensors dys,
                        GradientTargets dxs) override {
    backend_->PairDotsGrad(FieldViews(fields_, xs), terms_, fields_.dim, dys[0],
                           FieldTargets(fields_, xs, dxs));
    return absl::OkStatus();
  }

 private:
  FieldShape fields_;
  std::vector<PairTerm> terms_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> NewInnerProductLayer() {
  return std::make_unique<InnerProductLayer>();
}

}  // namespace satrap
