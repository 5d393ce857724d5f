#include "nn_worker/layer/layers.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "nn_worker/backend/tensor_copy.h"
#include "nn_worker/layer/shape.h"

namespace satrap {
namespace {

class CrossV2Layer final : public BackendLayer {
 public:
  explicit CrossV2Layer(int64_t rank) : rank_(rank) {}

  absl::StatusOr<std::vector<SampleShape>> Infer(absl::Span<const SampleShape> inputs) override {
    if (inputs.size() != 2) {
      return absl::InvalidArgumentError(absl::StrCat("takes two inputs, got ", inputs.size()));
    }
    RETURN_IF_ERROR(RequireVectors(inputs));
    RETURN_IF_ERROR(RequireEqualShapes(inputs));
    if (inputs[0][0] < 1) return absl::InvalidArgumentError("takes at least one value");
    dim_ = inputs[0][0];
    return std::vector<SampleShape>{inputs[0]};
  }

  std::vector<ParameterSpec> parameters() const override {
    if (rank_ == 0) return {Weight("weight", dim_, dim_), {"bias", 1, dim_}};
    return {Weight("down", dim_, rank_), Weight("up", rank_, dim_), {"bias", 1, dim_}};
  }

  absl::Status Bind(const LayerBinding& binding) override {
    backend_ = binding.backend;
    parameters_.assign(binding.parameters.begin(), binding.parameters.end());
    gradients_.assign(binding.gradients.begin(), binding.gradients.end());
    for (Tensor* values : {&map_, &map_gradient_}) {
      ASSIGN_OR_RETURN(*values, AllocateTensor(backend_, DType::kF32, binding.max_samples, dim_));
    }
    if (rank_ == 0) return absl::OkStatus();
    for (Tensor* values : {&down_, &down_gradient_}) {
      ASSIGN_OR_RETURN(*values, AllocateTensor(backend_, DType::kF32, binding.max_samples, rank_));
    }
    return absl::OkStatus();
  }

  absl::Status Forward(const PassContext&, Tensors xs, Tensors ys) override {
    const Tensor map = map_.FirstRows(ys[0].rows);
    Tensor x = xs[1];
    if (rank_ > 0) {
      const Tensor down = down_.FirstRows(ys[0].rows);
      backend_->Linear(x, parameters_[0], Tensor(), Activation::kLinear, down);
      x = down;
    }
    backend_->Linear(x, *(parameters_.end() - 2), parameters_.back(), Activation::kLinear, map);
    backend_->Copy(xs[1], ys[0], /*add=*/false);
    backend_->Multiply(xs[0], map, ys[0], /*add=*/true);
    return absl::OkStatus();
  }

  absl::Status Backward(const PassContext&, Tensors xs, Tensors, Tensors dys,
                        GradientTargets dxs) override {
    // G = dy, t = W x_l + b: dx_0 = G t; H = G x_0; dW = x_l H^T; db = H; dx_l = G + W^T H.
    const int64_t n = dys[0].rows;
    const Tensor dmap = map_gradient_.FirstRows(n);
    backend_->Multiply(dys[0], xs[0], dmap, /*add=*/false);
    if (dxs[0].wanted()) {
      backend_->Multiply(dys[0], map_.FirstRows(n), dxs[0].tensor, dxs[0].add);
    }
    if (dxs[1].wanted()) backend_->Copy(dys[0], dxs[1].tensor, dxs[1].add);
    LinearGradArgs args;
    args.w = *(parameters_.end() - 2);
    args.y = map_.FirstRows(n);
    args.dy = dmap;
    args.dw = *(gradients_.end() - 2);
    args.db = gradients_.back();
    if (rank_ == 0) {
      args.x = xs[1];
      args.dx = {dxs[1].tensor, /*add=*/true};
      backend_->LinearGrad(args);
      return absl::OkStatus();
    }
    args.x = down_.FirstRows(n);
    args.dx = {down_gradient_.FirstRows(n), /*add=*/false};
    backend_->LinearGrad(args);
    LinearGradArgs first;
    first.x = xs[1];
    first.w = parameters_[0];
    first.y = down_.FirstRows(n);
    first.dy = down_gradient_.FirstRows(n);
    first.dx = {dxs[1].tensor, /*add=*/true};
    first.dw = gradients_[0];
    backend_->LinearGrad(first);
    return absl::OkStatus();
  }

 private:
  static ParameterSpec Weight(const char* name, int64_t rows, int64_t cols) {
    const double stddev = std::sqrt(2.0 / static_cast<double>(rows + cols));
    return {name, rows, cols, ParameterSpec::Initial::kNormal, stddev};
  }

  const int64_t rank_;  // 0: full
  int64_t dim_ = 0;
  std::vector<Tensor> parameters_, gradients_;  // weight, or down and up; bias
  Tensor map_, down_;                           // of the last Forward: W x_l + b, V x_l
  Tensor map_gradient_, down_gradient_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> NewCrossV2Layer(const CrossV2Config& config) {
  if (config.layers() != 1) {
    return absl::InvalidArgumentError(
        "is a composite unless its field `layers` is 1: the graph expands it");
  }
  return std::make_unique<CrossV2Layer>(config.rank());
}

}  // namespace satrap
