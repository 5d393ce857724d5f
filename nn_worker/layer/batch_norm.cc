#include "nn_worker/layer/layers.h"

#include "common/base/status_macros.h"
#include "nn_worker/backend/tensor_copy.h"
#include "nn_worker/layer/shape.h"

namespace satrap {
namespace {

class BatchNormLayer final : public BackendLayer {
 public:
  explicit BatchNormLayer(const BatchNormConfig& config) : config_(config) {}

  absl::StatusOr<std::vector<SampleShape>> Infer(absl::Span<const SampleShape> inputs) override {
    RETURN_IF_ERROR(RequireOneInput(inputs));
    RETURN_IF_ERROR(RequireVectors(inputs));
    dim_ = inputs[0][0];
    return std::vector<SampleShape>{inputs[0]};
  }

  std::vector<ParameterSpec> parameters() const override {
    const auto constant = ParameterSpec::Initial::kConstant;
    return {{"gamma", 1, dim_, constant, 1}, {"beta", 1, dim_, constant, 0}};
  }
  std::vector<StateSpec> states() const override {
    return {{"running_mean", dim_, 0}, {"running_variance", dim_, 1}};
  }

  bool prevents_capture() const override { return global() && !alone(); }

  absl::Status Bind(const LayerBinding& binding) override {
    backend_ = binding.backend;
    collective_ = binding.collective;
    control_ = binding.control;
    gamma_ = binding.parameters[0];
    beta_ = binding.parameters[1];
    gamma_gradient_ = binding.gradients[0];
    beta_gradient_ = binding.gradients[1];
    mean_ = binding.states[0];
    variance_ = binding.states[1];
    ASSIGN_OR_RETURN(stats_, AllocateTensor(backend_, DType::kF32, 2, dim_));
    ASSIGN_OR_RETURN(sums_, AllocateTensor(backend_, DType::kF64, 1, 2 * dim_ + 1));
    ASSIGN_OR_RETURN(gradient_sums_, AllocateTensor(backend_, DType::kF64, 1, 2 * dim_));
    host_sums_.resize(2 * dim_ + 1);
    return absl::OkStatus();
  }

  absl::Status Forward(const PassContext& pass, Tensors xs, Tensors ys) override {
    if (!pass.training) {
      backend_->BatchNormFixed(xs[0], mean_, variance_, config_.epsilon(), gamma_, beta_, ys[0]);
      return absl::OkStatus();
    }
    backend_->Moments(xs[0], sums_);
    if (global()) RETURN_IF_ERROR(Reduce(sums_));
    backend_->BatchNorm(xs[0], sums_, config_.epsilon(), gamma_, beta_, stats_, ys[0]);
    return absl::OkStatus();
  }

  absl::Status Backward(const PassContext&, Tensors xs, Tensors, Tensors dys,
                        GradientTargets dxs) override {
    backend_->BatchNormGradSums(xs[0], stats_, dys[0], gradient_sums_);
    // The gradients of beta and gamma must be this rank's own sums, so they are taken before
    // Reduce: the step's allreduce adds up the parameter gradients of all ranks.
    backend_->ToF32(gradient_sums_.Columns(0, dim_), beta_gradient_);
    backend_->ToF32(gradient_sums_.Columns(dim_, dim_), gamma_gradient_);
    if (global()) RETURN_IF_ERROR(Reduce(gradient_sums_));
    if (dxs[0].wanted()) {
      backend_->BatchNormGrad(xs[0], stats_, gamma_, dys[0], sums_, gradient_sums_, dxs[0]);
    }
    return absl::OkStatus();
  }

  absl::Status EndStep() override {
    // This runs in every step, even in one that changes nothing, because only the control knows
    // whether the step applies, and the other ranks wait here.
    if (!global()) RETURN_IF_ERROR(Reduce(sums_));
    backend_->BatchNormRunning(control_, sums_, config_.momentum(), mean_, variance_);
    return absl::OkStatus();
  }

 private:
  bool global() const { return config_.scope() == BatchNormConfig::GLOBAL; }
  bool alone() const { return collective_->size() == 1; }
  // Adds up the sums of all ranks. There are few values, so they are copied to the host on every
  // backend.
  absl::Status Reduce(Tensor sums) {
    if (alone()) return absl::OkStatus();
    const absl::Span<double> host = absl::MakeSpan(host_sums_).subspan(0, sums.cols);
    CopyOut(backend_, sums, host);
    backend_->Sync();
    RETURN_IF_ERROR(collective_->AllReduceSum(host));
    CopyIn(backend_, host, sums);
    return absl::OkStatus();
  }

  const BatchNormConfig config_;
  int64_t dim_ = 0;
  Collective* collective_ = nullptr;
  Tensor control_;
  Tensor gamma_, beta_, gamma_gradient_, beta_gradient_, mean_, variance_;
  Tensor stats_;  // of the last training pass: mean, 1 / std
  Tensor sums_;   // of the last training pass, as Backend::Moments
  Tensor gradient_sums_;
  std::vector<double> host_sums_;  // room for either
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> NewBatchNormLayer(const BatchNormConfig& config) {
  return std::make_unique<BatchNormLayer>(config);
}

}  // namespace satrap
