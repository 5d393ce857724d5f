#include "nn_worker/layer/layers.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "nn_worker/backend/tensor_copy.h"
#include "nn_worker/layer/shape.h"

namespace satrap {
namespace {

// The order of the parameters. kResidual exists only if the input must be projected before it can
// be added.
enum Weight { kQuery, kKey, kValue, kResidual };

class AttentionLayer final : public BackendLayer {
 public:
  explicit AttentionLayer(const AttentionConfig& config)
      : config_(config),
        heads_(config.heads()),
        units_(config.units()),
        head_dim_(config.units() / config.heads()),
        scale_(config.scale() ? 1 / std::sqrt(static_cast<float>(head_dim_)) : 1) {}

  absl::StatusOr<std::vector<SampleShape>> Infer(absl::Span<const SampleShape> inputs) override {
    RETURN_IF_ERROR(RequireOneInput(inputs));
    if (inputs[0].size() != 2 || inputs[0][0] < 1 || inputs[0][1] < 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          "takes vectors [k, d], such as the output of a stack, got ", ShapeText(inputs[0])));
    }
    count_ = inputs[0][0];
    dim_ = inputs[0][1];
    return std::vector<SampleShape>{{count_, units_}};
  }

  std::vector<ParameterSpec> parameters() const override {
    const double stddev = std::sqrt(2.0 / static_cast<double>(dim_ + units_));
    std::vector<ParameterSpec> specs;
    for (const char* name : {"query", "key", "value", "residual"}) {
      specs.push_back({name, dim_, units_, ParameterSpec::Initial::kNormal, stddev});
    }
    if (!HasResidualWeight()) specs.pop_back();
    return specs;
  }

  int64_t ForwardFlops() const override {
    const int64_t weights = HasResidualWeight() ? 4 : 3;
    // Counts the products with the weights, and the scores and weighted sums of all heads.
    return 2 * count_ * dim_ * units_ * weights + 4 * count_ * count_ * units_;
  }

  absl::Status Bind(const LayerBinding& binding) override {
    backend_ = binding.backend;
    weights_.assign(binding.parameters.begin(), binding.parameters.end());
    gradients_.assign(binding.gradients.begin(), binding.gradients.end());
    const int64_t n = binding.max_samples;
    for (Tensor* inputs : {&input_, &input_gradient_}) {
      ASSIGN_OR_RETURN(*inputs, AllocateTensor(backend_, DType::kF32, n, count_ * dim_));
    }
    for (Tensor* projected : {&query_, &key_, &value_, &scratch_}) {
      ASSIGN_OR_RETURN(*projected, AllocateTensor(backend_, DType::kF32, n, count_ * units_));
    }
    for (Tensor* scores : {&scores_, &shares_, &score_gradient_}) {
      ASSIGN_OR_RETURN(*scores, AllocateTensor(backend_, DType::kF32, n, heads_ * count_ * count_));
    }
    return absl::OkStatus();
  }

  absl::Status Forward(const PassContext&, Tensors xs, Tensors ys) override {
    const int64_t n = ys[0].rows;
    const Tensor x = WithoutGaps(xs[0], input_);
    Project(x, kQuery, query_.FirstRows(n));
    Project(x, kKey, key_.FirstRows(n));
    Project(x, kValue, value_.FirstRows(n));
    backend_->BatchedProduct(OfHeads(query_, n), Transposed(OfHeads(key_, n)), heads_, scale_,
                             Scores(scores_, n), /*add=*/false);
    backend_->Softmax(scores_.FirstRows(n), count_, shares_.FirstRows(n));
    backend_->BatchedProduct(Scores(shares_, n), OfHeads(value_, n), heads_, 1, OfHeads(ys[0], n),
                             /*add=*/false);
    if (!config_.residual()) return absl::OkStatus();
    Tensor residual = xs[0];
    if (HasResidualWeight()) {
      residual = scratch_.FirstRows(n);
      Project(x, kResidual, residual);
    }
    backend_->Copy(residual, ys[0], /*add=*/true);
    return absl::OkStatus();
  }

  absl::Status Backward(const PassContext&, Tensors xs, Tensors, Tensors dys,
                        GradientTargets dxs) override {
    const int64_t n = dys[0].rows;
    const Tensor x = xs[0].has_gaps() ? input_.FirstRows(n) : xs[0];  // as Forward had it
    const SampleMatrices dy = OfHeads(dys[0], n);
    const SampleMatrices dscores = Scores(score_gradient_, n);
    // Overwrites the softmax's input (scores_), which is not read again, with the gradient of the
    // softmax's output.
    backend_->BatchedProduct(dy, Transposed(OfHeads(value_, n)), heads_, 1, Scores(scores_, n),
                             /*add=*/false);
    backend_->SoftmaxGrad(shares_.FirstRows(n), scores_.FirstRows(n), count_,
                          {dscores.tensor, /*add=*/false});
    const SampleMatrices projected = OfHeads(scratch_, n);
    backend_->BatchedProduct(Transposed(Scores(shares_, n)), dy, heads_, 1, projected,
                             /*add=*/false);
    ProjectGrad(x, kValue, projected.tensor, /*add=*/false);
    backend_->BatchedProduct(dscores, OfHeads(key_, n), heads_, scale_, projected, /*add=*/false);
    ProjectGrad(x, kQuery, projected.tensor, /*add=*/true);
    backend_->BatchedProduct(Transposed(dscores), OfHeads(query_, n), heads_, scale_, projected,
                             /*add=*/false);
    ProjectGrad(x, kKey, projected.tensor, /*add=*/true);
    if (HasResidualWeight()) {
      backend_->Copy(dys[0], projected.tensor, /*add=*/false);
      ProjectGrad(x, kResidual, projected.tensor, /*add=*/true);
    }
    if (!dxs[0].wanted()) return absl::OkStatus();
    backend_->Copy(input_gradient_.FirstRows(n), dxs[0].tensor, dxs[0].add);
    if (config_.residual() && !HasResidualWeight()) {
      backend_->Copy(dys[0], dxs[0].tensor, /*add=*/true);
    }
    return absl::OkStatus();
  }

 private:
  bool HasResidualWeight() const { return config_.residual() && dim_ != units_; }

  // Returns `x`, or a copy in `room` if its rows have gaps, because the products treat each vector
  // as a row.
  Tensor WithoutGaps(const Tensor& x, const Tensor& room) {
    if (!x.has_gaps()) return x;
    backend_->Copy(x, room.FirstRows(x.rows), /*add=*/false);
    return room.FirstRows(x.rows);
  }
  Tensor Vectors(const Tensor& x, int64_t dim) const { return x.Reshaped(x.rows * count_, dim); }
  void Project(const Tensor& x, Weight weight, const Tensor& y) {
    backend_->Linear(Vectors(x, dim_), weights_[weight], Tensor(), Activation::kLinear,
                     Vectors(y, units_));
  }
  // Assigns or adds to input_gradient_.
  void ProjectGrad(const Tensor& x, Weight weight, const Tensor& dy, bool add) {
    LinearGradArgs args;
    args.x = Vectors(x, dim_);
    args.w = weights_[weight];
    args.y = Vectors(dy, units_);  // not read, because the product is linear
    args.dy = Vectors(dy, units_);
    args.dx = {Vectors(input_gradient_.FirstRows(x.rows), dim_), add};
    args.dw = gradients_[weight];
    backend_->LinearGrad(args);
  }
  // The heads lie side by side in each vector.
  SampleMatrices OfHeads(const Tensor& x, int64_t samples) const {
    return {x.FirstRows(samples), count_, head_dim_, units_, head_dim_};
  }
  SampleMatrices Scores(const Tensor& x, int64_t samples) const {
    return {x.FirstRows(samples), count_, count_, count_, count_ * count_};
  }
  static SampleMatrices Transposed(SampleMatrices matrices) {
    matrices.transposed = true;
    return matrices;
  }

  const AttentionConfig config_;
  const int64_t heads_;
  const int64_t units_;
  const int64_t head_dim_;
  const float scale_;
  int64_t count_ = 0;  // vectors
  int64_t dim_ = 0;
  std::vector<Tensor> weights_, gradients_;  // by Weight
  Tensor input_;  // of the last Forward, without gaps; unused if the input has none
  Tensor input_gradient_;
  Tensor query_, key_, value_;  // of the last Forward
  Tensor scores_, shares_;      // before and after the softmax
  Tensor score_gradient_, scratch_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> NewAttentionLayer(const AttentionConfig& config) {
  if (config.layers() != 1 || config.layer_norm()) {
    return absl::InvalidArgumentError("is a composite: the graph expands it");
  }
  if (config.units() % config.heads() != 0) {
    return absl::InvalidArgumentError(absl::StrCat("units must be a multiple of heads, got ",
                                                   config.units(), " units, ", config.heads(),
                                                   " heads"));
  }
  return std::make_unique<AttentionLayer>(config);
}

}  // namespace satrap
