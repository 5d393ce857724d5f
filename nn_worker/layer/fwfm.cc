#include "nn_worker/layer/layers.h"

#include <cmath>

#include "common/base/status_macros.h"
#include "nn_worker/backend/tensor_copy.h"
#include "nn_worker/layer/fields.h"
#include "nn_worker/layer/shape.h"

namespace satrap {
namespace {

class FwfmLayer final : public BackendLayer {
 public:
  absl::StatusOr<std::vector<SampleShape>> Infer(absl::Span<const SampleShape> inputs) override {
    ASSIGN_OR_RETURN(fields_, FieldsOf(inputs, /*least=*/2));
    terms_ = AllPairs(fields_.count, PairOrder::kSecondAfterFirst);
    return std::vector<SampleShape>{{1}};
  }

  std::vector<ParameterSpec> parameters() const override {
    const int64_t pairs = static_cast<int64_t>(terms_.size());
    const double stddev = std::sqrt(2.0 / static_cast<double>(pairs + 1));
    return {{"weight", pairs, 1, ParameterSpec::Initial::kNormal, stddev}};
  }
  int64_t ForwardFlops() const override {
    return 2 * (fields_.dim + 1) * static_cast<int64_t>(terms_.size());
  }

  absl::Status Bind(const LayerBinding& binding) override {
    backend_ = binding.backend;
    weight_ = binding.parameters[0];
    weight_gradient_ = binding.gradients[0];
    for (Tensor* dots : {&dots_, &dots_gradient_}) {
      ASSIGN_OR_RETURN(*dots, AllocateTensor(backend_, DType::kF32, binding.max_samples,
                                             static_cast<int64_t>(terms_.size())));
    }
    return absl::OkStatus();
  }

  absl::Status Forward(const PassContext&, Tensors xs, Tensors ys) override {
    const Tensor dots = dots_.FirstRows(ys[0].rows);
    backend_->PairDots(FieldViews(fields_, xs), terms_, fields_.dim, dots);
    backend_->Linear(dots, weight_, Tensor(), Activation::kLinear, ys[0]);
    return absl::OkStatus();
  }

  absl::Status Backward(const PassContext&, Tensors xs, Tensors ys, Tensors dys,
                        GradientTargets dxs) override {
    LinearGradArgs args;
    args.x = dots_.FirstRows(dys[0].rows);
    args.w = weight_;
    args.y = ys[0];
    args.dy = dys[0];
    args.dx = {dots_gradient_.FirstRows(dys[0].rows), /*add=*/false};
    args.dw = weight_gradient_;
    backend_->LinearGrad(args);
    backend_->PairDotsGrad(FieldViews(fields_, xs), terms_, fields_.dim, args.dx.tensor,
                           FieldTargets(fields_, xs, dxs));
    return absl::OkStatus();
  }

 private:
  FieldShape fields_;
  std::vector<PairTerm> terms_;
  Tensor weight_, weight_gradient_;
  Tensor dots_, dots_gradient_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> NewFwfmLayer() { return std::make_unique<FwfmLayer>(); }

}  // namespace satrap
