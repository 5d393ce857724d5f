#include "nn_worker/layer/layers.h"

#include <algorithm>

#include "common/base/status_macros.h"
#include "nn_worker/layer/shape.h"

namespace satrap {
namespace {

// Whether this is a sum of F32 scores. Such a sum is computed by one operation instead of one for
// each input, with the same bits. With 16-bit values the results would differ, because one
// operation rounds less often.
bool AreScores(Tensors xs, const Tensor& y) {
  return y.cols == 1 && y.dtype == DType::kF32 &&
         std::all_of(xs.begin(), xs.end(), [](const Tensor& x) { return x.dtype == DType::kF32; });
}

// Whether no two inputs have the same gradient tensor. They do if an input is added to itself.
bool AreDistinct(GradientTargets dxs) {
  for (size_t i = 0; i < dxs.size(); ++i) {
    for (size_t j = 0; dxs[i].wanted() && j < i; ++j) {
      if (dxs[j].tensor.data == dxs[i].tensor.data) return false;
    }
  }
  return true;
}

class AddLayer final : public BackendLayer {
 public:
  absl::StatusOr<std::vector<SampleShape>> Infer(absl::Span<const SampleShape> inputs) override {
    RETURN_IF_ERROR(RequireSomeInput(inputs));
    RETURN_IF_ERROR(RequireEqualShapes(inputs));
    return std::vector<SampleShape>{inputs[0]};
  }

  absl::Status Forward(const PassContext&, Tensors xs, Tensors ys) override {
    if (AreScores(xs, ys[0])) {
      backend_->RowSum(xs, ys[0]);
      return absl::OkStatus();
    }
    for (size_t i = 0; i < xs.size(); ++i) backend_->Copy(xs[i], ys[0], /*add=*/i > 0);
    return absl::OkStatus();
  }

  absl::Status Backward(const PassContext&, Tensors xs, Tensors, Tensors dys,
                        GradientTargets dxs) override {
    if (AreScores(xs, dys[0]) && AreDistinct(dxs)) {
      backend_->RowSumGrad(dys[0], dxs);
      return absl::OkStatus();
    }
    for (const GradientTarget& dx : dxs) {
      if (dx.wanted()) backend_->Copy(dys[0], dx.tensor, dx.add);
    }
    return absl::OkStatus();
  }
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> NewAddLayer() { return std::make_unique<AddLayer>(); }

}  // namespace satrap
