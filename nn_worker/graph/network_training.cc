#include "nn_worker/graph/network_training.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "nn_worker/backend/tensor_copy.h"
#include "nn_worker/graph/step/gradient_squares.h"
#include "nn_worker/operation/step_normalizer.h"
#include "nn_worker/optimizer/dense_optimizer_factory.h"

namespace satrap {

absl::Status NetworkTraining::Allocate() {
  ASSIGN_OR_RETURN(
      ranges_, MakeParameterRanges(values_.parameter_layout, options_.optimizer, optimizer_.rule));
  if (options_.trains) RETURN_IF_ERROR(AllocateGradients());
  copies_of_ranges_ = CopiesOfRanges();
  ASSIGN_OR_RETURN(control_, AllocateControl(backend_));
  StepControl first;
  first.gradient_scale = gradient_scale_.scale;
  first.clean_steps = gradient_scale_.clean_steps;
  WriteControl(first);
  ASSIGN_OR_RETURN(step_sums_, AllocateTensor(backend_, DType::kF32, 1, kNumStepSums));
  return absl::OkStatus();
}

absl::Status NetworkTraining::AllocateGradients() {
  const int64_t size = values_.parameter_layout.size;
  ASSIGN_OR_RETURN(gradients_, AllocateTensor(backend_, DType::kF32, 1, size));
  ASSIGN_OR_RETURN(sums_,
                   NewGradientSums(backend_, options_.collective, options_.reduction, gradients_));
  ASSIGN_OR_RETURN(const Tensor all_states,
                   AllocateTensor(backend_, DType::kF32, optimizer_.states.size(), size));
  for (int64_t s = 0; s < all_states.rows; ++s) states_.push_back(all_states.Rows(s, 1));
  return absl::OkStatus();
}

void NetworkTraining::SetInitialState() {
  for (size_t state = 0; state < states_.size(); ++state) {
    backend_->Fill(states_[state], optimizer_.states[state].initial_value);
  }
}

// Each array lies in a single range, because settings apply to parameters by name.
std::vector<std::vector<WeightCopy>> NetworkTraining::CopiesOfRanges() const {
  std::vector<std::vector<WeightCopy>> of_ranges;
  for (const ParameterRange& range : ranges_) {
    of_ranges.emplace_back();
    for (size_t i = 0; i < values_.copies.size(); ++i) {
      const int64_t begin = values_.parameter_layout.arrays[i].begin - range.begin;
      if (values_.copies[i].empty() || begin < 0 || begin >= range.size) continue;
      // The copy in the range includes its padding.
      of_ranges.back().push_back({begin, values_.copies[i].WithPadding()});
    }
  }
  return of_ranges;
}

void NetworkTraining::WriteControl(const StepControl& value) {
  CopyIn(backend_, absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(&value), sizeof(value)),
         control_);
}

void NetworkTraining::AppendState(std::vector<KeptArray>* kept) const {
  for (size_t state = 0; state < states_.size(); ++state) {
    AppendKept(values_.parameter_layout, states_[state],
               absl::StrCat("#", optimizer_.states[state].name), kept);
  }
}

absl::Status NetworkTraining::StartReduce() {
  const ProfilerRange range(backend_, "start the sum of gradients");
  CHECK(!reducing_) << "the gradients are being reduced";
  RETURN_IF_ERROR(sums_->Start());
  reducing_ = true;
  return absl::OkStatus();
}

absl::Status NetworkTraining::FinishReduce() {
  const ProfilerRange range(backend_, "finish the sum of gradients");
  CHECK(reducing_) << "no reduction was started";
  reducing_ = false;
  return sums_->Finish();
}

double NetworkTraining::GradientSquares(const DenseStep& step, const StepTotals& totals) {
  values_.ShowAverages(false);
  const double normalizer = StepNormalizer(
      totals.weight, static_cast<uint64_t>(std::llround(totals.samples)), step.global_batch_size);
  const auto scale = static_cast<float>(1.0 / (normalizer * gradient_scale_.scale));
  backend_->Sync();
  std::vector<float> copies[2];
  const auto on_host = [&](const Tensor& tensor, std::vector<float>* copy) {
    const void* const view = backend_->HostView(tensor.data);
    if (view == nullptr) *copy = ReadFloats(backend_, tensor);
    return absl::MakeConstSpan(view == nullptr ? copy->data() : static_cast<const float*>(view),
                               static_cast<size_t>(values_.parameter_layout.size));
  };
  absl::Span<const float> gradient = sums_->HostCopy();
  if (gradient.empty()) gradient = on_host(gradients_, &copies[0]);
  const absl::Span<const float> w = on_host(values_.parameters, &copies[1]);
  // Padding and gaps between parameters are 0 in both buffers and add nothing.
  double squares = 0;
  for (const ParameterRange& range : ranges_) {
    squares += satrap::GradientSquares(scale, range.rule, gradient.subspan(range.begin, range.size),
                                       w.subspan(range.begin, range.size));
  }
  return squares;
}

void NetworkTraining::Step(const DenseStep& step, const StepTotals& totals, float clip_factor) {
  float sums[kNumStepSums];
  sums[kStepSamples] = totals.samples;
  sums[kStepWeight] = totals.weight;
  sums[kStepNotFinite] = totals.not_finite;
  CopyIn(backend_, sums, step_sums_);
  const DenseOptimizerConfig& config = options_.optimizer;
  StepPlan plan = PlanOf(config, optimizer_, step, start_);
  plan.gradient_scale = gradient_scale_.rule;
  backend_->DecideStep(plan, step_sums_, control_);
  if (clip_factor != 1) {
    // The clip factor is multiplied into the control's scale, which applies only to gradients, and
    // into L2 and L1, which are added to the gradients.
    StepControl clipped = ReadControl();
    clipped.scale *= clip_factor;
    WriteControl(clipped);
  }
  values_.ShowAverages(false);
  for (size_t r = 0; r < ranges_.size(); ++r) {
    const ParameterRange& range = ranges_[r];
    std::vector<Tensor> states;
    for (const Tensor& state : states_) states.push_back(state.Columns(range.begin, range.size));
    OptimizerRule rule = range.rule;
    rule.l2 *= clip_factor;
    rule.l1 *= clip_factor;
    backend_->OptimizerStep(control_, rule, gradients_.Columns(range.begin, range.size),
                            values_.parameters.Columns(range.begin, range.size), states,
                            copies_of_ranges_[r]);
  }
  if (values_.averages.has_value()) values_.averages->Follow(control_);
}

void NetworkTraining::EndStep() {
  // If the scale never changes, it is known without waiting for the device.
  if (!gradient_scale_.moves()) return;
  const StepControl decided = ReadControl();
  gradient_scale_.scale = decided.gradient_scale;
  gradient_scale_.clean_steps = decided.clean_steps;
}

StepControl NetworkTraining::ReadControl() { return satrap::ReadControl(backend_, control_); }

}  // namespace satrap
