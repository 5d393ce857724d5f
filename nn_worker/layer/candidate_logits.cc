#include "nn_worker/layer/layers.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "nn_worker/backend/tensor_copy.h"
#include "nn_worker/layer/score_product.h"
#include "nn_worker/layer/shape.h"

namespace satrap {
namespace {

// A vector whose squared norm is below this has no direction. L2NormalizeConfig has the same value.
constexpr float kEpsilon = 1e-12f;

enum Input { kUser, kPositive, kCandidates, kPositiveBias, kCandidateBias };

class CandidateLogitsLayer final : public BackendLayer {
 public:
  explicit CandidateLogitsLayer(const CandidateLogitsConfig& config) : config_(config) {}

  bool reads_part(int input) const override {
    return input == kCandidates || input == kCandidateBias;
  }

  absl::StatusOr<std::vector<SampleShape>> Infer(absl::Span<const SampleShape> inputs) override {
    const size_t wanted = config_.bias() ? 5 : 3;
    if (inputs.size() != wanted) {
      return absl::InvalidArgumentError(
          absl::StrCat("takes ", wanted, " inputs", config_.bias() ? " with bias" : " without bias",
                       ", got ", inputs.size()));
    }
    const SampleShape& candidates = inputs[kCandidates];
    dim_ = candidates.back();
    if (candidates.size() != 2) {
      return absl::InvalidArgumentError(
          absl::StrCat("takes candidates [S, d] as input 2, got ", ShapeText(candidates)));
    }
    const int64_t count = candidates[0];
    RETURN_IF_ERROR(Require(inputs, kUser, {dim_}));
    RETURN_IF_ERROR(Require(inputs, kPositive, {dim_}));
    if (config_.bias()) {
      RETURN_IF_ERROR(Require(inputs, kPositiveBias, {1}));
      RETURN_IF_ERROR(Require(inputs, kCandidateBias, {count, 1}));
    }
    count_ = count;
    return std::vector<SampleShape>{{1 + count}};
  }

  int64_t ForwardFlops() const override { return 2 * dim_ * (1 + count_); }

  absl::Status Bind(const LayerBinding& binding) override {
    backend_ = binding.backend;
    RETURN_IF_ERROR(product_.Bind(backend_, count_, dim_));
    for (Tensor* scratch : {&users_, &dusers_}) {
      ASSIGN_OR_RETURN(*scratch, AllocateTensor(backend_, DType::kF32, binding.max_samples, dim_));
    }
    if (!config_.normalize()) return absl::OkStatus();
    RETURN_IF_ERROR(user_.Bind(backend_, binding.max_samples, dim_));
    RETURN_IF_ERROR(positive_.Bind(backend_, binding.max_samples, dim_));
    return candidates_.Bind(backend_, count_, dim_);
  }

  absl::Status Forward(const PassContext&, Tensors xs, Tensors ys) override {
    const int64_t samples = ys[0].rows;
    const Tensor users = users_.FirstRows(samples);
    backend_->Scale(config_.scale(), user_.Forward(config_, xs[kUser]), users, /*add=*/false);
    const Tensor own = ys[0].Columns(0, 1);
    const Tensor pair[] = {users, positive_.Forward(config_, xs[kPositive])};
    backend_->PairDots(pair, kOnePair, dim_, own);
    if (config_.bias()) backend_->Copy(xs[kPositiveBias], own, /*add=*/true);
    const int64_t count = xs[kCandidates].rows;
    if (count == 0) return absl::OkStatus();
    product_.Forward(users, candidates_.Forward(config_, xs[kCandidates]),
                     config_.bias() ? xs[kCandidateBias] : Tensor(), ys[0].Columns(1, count));
    return absl::OkStatus();
  }

  absl::Status Backward(const PassContext&, Tensors xs, Tensors ys, Tensors dys,
                        GradientTargets dxs) override {
    const int64_t samples = ys[0].rows;
    const int64_t count = xs[kCandidates].rows;
    const Tensor users = users_.FirstRows(samples), dusers = dusers_.FirstRows(samples);
    const Tensor down = dys[0].Columns(0, 1);
    const GradientTarget dpositive = positive_.Target(config_, dxs[kPositive], samples);
    const Tensor pair[] = {users, config_.normalize() ? positive_.values(samples) : xs[kPositive]};
    const GradientTarget dpair[] = {{dusers, false}, dpositive};
    backend_->PairDotsGrad(pair, kOnePair, dim_, down, dpair);
    positive_.Backward(config_, dpositive, dxs[kPositive]);
    if (config_.bias() && dxs[kPositiveBias].wanted()) {
      backend_->Copy(down, dxs[kPositiveBias].tensor, dxs[kPositiveBias].add);
    }
    if (count > 0) {
      const GradientTarget dcandidates = candidates_.Target(config_, dxs[kCandidates], count);
      product_.Backward(users, ys[0].Columns(1, count), dys[0].Columns(1, count), {dusers, true},
                        dcandidates, config_.bias() ? dxs[kCandidateBias] : GradientTarget());
      candidates_.Backward(config_, dcandidates, dxs[kCandidates]);
    }
    const GradientTarget duser = user_.Target(config_, dxs[kUser], samples);
    if (!duser.wanted()) return absl::OkStatus();
    backend_->Scale(config_.scale(), dusers, duser.tensor, duser.add);
    user_.Backward(config_, duser, dxs[kUser]);
    return absl::OkStatus();
  }

 private:
  // The vectors of one input, divided by their norms if `normalize` is set.
  class Vectors {
   public:
    absl::Status Bind(Backend* backend, int64_t rows, int64_t dim) {
      backend_ = backend;
      for (Tensor* tensor : {&values_, &gradients_}) {
        ASSIGN_OR_RETURN(*tensor, AllocateTensor(backend, DType::kF32, rows, dim));
      }
      ASSIGN_OR_RETURN(inverse_, AllocateTensor(backend, DType::kF32, rows, 1));
      return absl::OkStatus();
    }
    Tensor values(int64_t rows) const { return values_.FirstRows(rows); }
    Tensor Forward(const CandidateLogitsConfig& config, Tensor x) {
      if (!config.normalize()) return x;
      backend_->Normalize(Normalization::kL2, x, x.cols, kEpsilon, values(x.rows),
                          inverse_.FirstRows(x.rows));
      return values(x.rows);
    }
    // The target for the gradient of the vectors that Forward returned.
    GradientTarget Target(const CandidateLogitsConfig& config, GradientTarget dx,
                          int64_t rows) const {
      if (!config.normalize() || !dx.wanted()) return dx;
      return {gradients_.FirstRows(rows), false};
    }
    // Computes the gradient of x from the gradient in `target`.
    void Backward(const CandidateLogitsConfig& config, GradientTarget target, GradientTarget dx) {
      if (!config.normalize() || !dx.wanted()) return;
      const int64_t rows = target.tensor.rows;
      backend_->NormalizeGrad(Normalization::kL2, values(rows), inverse_.FirstRows(rows),
                              target.tensor, dx.tensor.cols, dx);
    }

   private:
    Backend* backend_ = nullptr;
    Tensor values_, gradients_, inverse_;
  };

  static absl::Status Require(absl::Span<const SampleShape> inputs, int input,
                              const SampleShape& wanted) {
    if (inputs[input] == wanted) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("takes ", ShapeText(wanted), " as input ", input,
                                                   ", got ", ShapeText(inputs[input])));
  }

  static constexpr PairTerm kOnePair[] = {{0, 0, 1, 0}};

  const CandidateLogitsConfig config_;
  int64_t dim_ = 0;
  int64_t count_ = 0;
  ScoreProduct product_;
  Tensor users_, dusers_;  // times the scale
  Vectors user_, positive_, candidates_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> NewCandidateLogitsLayer(
    const CandidateLogitsConfig& config) {
  return std::make_unique<CandidateLogitsLayer>(config);
}

}  // namespace satrap
