#include "embedding_ps/table/row_updater.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/config/setting_rules.h"
#include "common/learning_rate/learning_rate_schedule.h"
#include "common/numeric/vectorize.h"
#include "embedding_ps/optimizer/row_step.h"

namespace satrap {
namespace {

absl::Status At(int segment, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat("segments[", segment, "].", status.message()));
}

// The settings that decide how a segment's values are stepped, as a string to compare.
std::string SteppedAlike(SegmentConfig segment) {
  segment.clear_name();
  segment.clear_dim();
  segment.clear_initializer();
  return segment.SerializeAsString();
}

}  // namespace

absl::StatusOr<RowUpdater> RowUpdater::Create(const TableConfig& config, uint64_t seed,
                                              SparseOptimizerFactory new_optimizer) {
  RETURN_IF_ERROR(CheckConfig(config, ""));
  RowUpdater updater;
  updater.is_global_ = config.semantics() == TableConfig::GLOBAL;
  std::vector<RowLayout::Segment> layout;
  for (int i = 0; i < config.segments_size(); ++i) {
    const SegmentConfig& segment = config.segments(i);
    auto initializer = Initializer::Create(segment.initializer(), seed, config.id(), i);
    if (!initializer.ok()) return At(i, initializer.status());
    auto optimizer = new_optimizer(segment.optimizer());
    if (!optimizer.ok()) return At(i, optimizer.status());
    const int state_size = (*optimizer)->StateSize(segment.dim());
    const SegmentRule rule(segment);
    using IdleStep = SparseOptimizer::IdleStep;
    const IdleStep idle_step = (*optimizer)->idle_step();
    const bool needs_sweep =
        updater.is_global_ && (rule.IsDense() || idle_step == IdleStep::kValues);
    const bool keeps_last_step =
        updater.is_global_ && !needs_sweep && idle_step == IdleStep::kState;
    layout.push_back(
        {segment.dim(), state_size + (rule.KeepsL2Step() ? 1 : 0) + (keeps_last_step ? 1 : 0)});
    updater.is_dense_ |= rule.IsDense();
    updater.needs_sweep_ |= needs_sweep;
    updater.has_last_step_ |=
        updater.is_global_ && (keeps_last_step || segment.optimizer().has_sgd_l1());
    updater.needs_sample_counts_ |= (*optimizer)->NeedsSampleCount() || rule.NeedsSampleCount();
    updater.needs_part_share_ |= rule.NeedsPartShare();
    updater.only_normalises_ &= rule.OnlyNormalises();
    updater.segments_.push_back({*std::move(initializer), *std::move(optimizer), rule, state_size,
                                 keeps_last_step, needs_sweep});
  }
  updater.layout_ = RowLayout(std::move(layout));
  updater.FuseSegments(config);
  updater.schedule_ = config.learning_rate_schedule();
  updater.normalises_ = config.normalisation() == GLOBAL_BATCH;
  return updater;
}

void RowUpdater::FuseSegments(const TableConfig& config) {
  // Fewer, longer calls are faster: a segment `linear` of one value costs almost nothing if it is
  // stepped together with an embedding.
  std::string before;  // SteppedAlike of the previous segment
  for (int i = 0; i < config.segments_size(); ++i) {
    const RowLayout::Segment& at = layout_.segments()[i];
    const SegmentPolicy& policy = segments_[i];
    std::string text = SteppedAlike(config.segments(i));
    if (i > 0 && text == before && policy.optimizer->IsElementwise() &&
        policy.rule.IsElementwise() && !policy.keeps_last_step) {
      fused_.back().dim += at.dim;
      fused_.back().optimizer_state_size += policy.optimizer_state_size;
    } else {
      fused_.push_back({policy.optimizer.get(), &policy.rule, policy.rule.HasBound(),
                        policy.keeps_last_step, policy.needs_sweep,
                        config.segments(i).optimizer().learning_rate(), at.value_offset, at.dim,
                        at.state_offset, policy.optimizer_state_size, LastStepOffset(config, i)});
    }
    before = std::move(text);
  }
}

int RowUpdater::LastStepOffset(const TableConfig& config, int segment) const {
  const RowLayout::Segment& at = layout_.segments()[segment];
  const SegmentPolicy& policy = segments_[segment];
  if (policy.keeps_last_step) return at.state_offset + at.state_size - 1;
  // With sgd_l1 the last float of the state is the row's last step (sgd_l1.cc).
  if (!config.segments(segment).optimizer().has_sgd_l1()) return kNoOffset;
  return at.state_offset + policy.optimizer_state_size - 1;
}

void RowUpdater::InitValues(uint64_t key, float* values) const {
  for (size_t i = 0; i < segments_.size(); ++i) {
    const RowLayout::Segment& at = layout_.segments()[i];
    segments_[i].initializer.Fill(key, absl::MakeSpan(values + at.value_offset, at.dim));
  }
}

void RowUpdater::InitRow(uint64_t key, float* row) const {
  InitValues(key, row);
  for (size_t i = 0; i < segments_.size(); ++i) {
    const RowLayout::Segment& at = layout_.segments()[i];
    float* const state = row + at.state_offset;
    segments_[i].optimizer->InitState(absl::MakeSpan(state, segments_[i].optimizer_state_size));
    std::fill(state + segments_[i].optimizer_state_size, state + at.state_size, 0.0f);
  }
}

RowUpdater::Step::Step(const RowUpdater& updater, const StepContext& update, int64_t own_step,
                       ExactSum* squares)
    : updater_(updater),
      context_(update),
      inverse_normalizer_(updater.normalises_ ? 1 / update.normalizer : 1),
      clip_factor_(updater.is_clipped() ? update.clip_factor : 1),
      squares_(squares) {
  // The schedule is evaluated once for the update, not for each key.
  const double scheduled = LearningRateFactor(updater.schedule_, update.step);
  for (const FusedSegments& fused : updater.fused_) {
    learning_rates_.push_back(
        static_cast<float>(fused.learning_rate * scheduled * update.learning_rate_factor));
  }
  context_.step = own_step;
  normalised_.resize(updater.layout_.num_values());
  if (updater.needs_sweep_) zeros_.resize(updater.layout_.num_values());
}

bool RowUpdater::Step::has_idle_rows() const {
  if (!changes_rows()) return updater_.is_clipped() && updater_.is_global_ && updater_.is_dense_;
  return context_.finite ? updater_.needs_sweep_ : updater_.has_last_step_;
}

void RowUpdater::Step::VisitRow(uint64_t key, const float* gradient,
                                absl::optional<uint32_t> sample_count, float* row) {
  if (changes_rows()) {
    Apply(gradient, sample_count, row);
  } else {
    squares_->Add(Squares(key, gradient, sample_count, row));
  }
}

void RowUpdater::Step::VisitIdleRows(float* rows, size_t stride, size_t count) {
  if (changes_rows()) {
    Sweep(rows, stride, count);
  } else {
    for (size_t i = 0; i < count; ++i) squares_->Add(IdleSquares(rows + i * stride));
  }
}

void RowUpdater::Step::Prepare(const float* gradient, float* row) {
  if (updater_.only_normalises_) {
    WriteScaled(inverse_normalizer_, gradient, normalised_.data(), normalised_.size());
    return;
  }
  for (const FusedSegments& fused : updater_.fused_) PrepareSegment(fused, gradient, row);
}

void RowUpdater::Step::PrepareSegment(const FusedSegments& fused, const float* gradient,
                                      float* row) {
  fused.rule->Prepare(context_, inverse_normalizer_, gradient + fused.value_offset,
                      row + fused.value_offset,
                      row + fused.state_offset + fused.optimizer_state_size,
                      normalised_.data() + fused.value_offset, fused.dim);
}

void RowUpdater::Step::Apply(const float* gradient, absl::optional<uint32_t> sample_count,
                             float* row) {
  // Rules read the values from before the step. The bound applies to the values after the step.
  context_.sample_count = sample_count;
  Prepare(gradient, row);
  if (clip_factor_ != 1) {
    for (float& value : normalised_) value *= clip_factor_;
  }
  const float* learning_rate = learning_rates_.data();
  for (const FusedSegments& fused : updater_.fused_) {
    if (fused.keeps_last_step) CatchUp(fused, row);
    StepOptimizer(fused, *learning_rate++, normalised_.data(), row);
  }
}

void RowUpdater::Step::StepOptimizer(const FusedSegments& fused, float learning_rate,
                                     const float* gradient, float* row) {
  context_.learning_rate = learning_rate;
  float* const values = row + fused.value_offset;
  fused.optimizer->Step(context_, absl::MakeConstSpan(gradient + fused.value_offset, fused.dim),
                        absl::MakeSpan(values, fused.dim),
                        absl::MakeSpan(row + fused.state_offset, fused.optimizer_state_size));
  if (fused.has_bound) fused.rule->Bound(values, fused.dim);
}

// Ages the optimizer's state by the steps that the row has missed. Only for rules under which
// missed steps do not change the values of the row.
void RowUpdater::Step::CatchUp(const FusedSegments& fused, float* row) const {
  float& last_step = row[fused.last_step_offset];
  const int64_t missed = StepsPassed(last_step, context_.step) - 1;
  if (missed > 0) {
    fused.optimizer->AgeState(missed,
                              absl::MakeSpan(row + fused.state_offset, fused.optimizer_state_size));
  }
  last_step = EncodedStep(context_.step);
}

void RowUpdater::Step::AgeNewRow(float* row) const {
  if (!updater_.is_global_ || context_.step == 0) return;
  for (const FusedSegments& fused : updater_.fused_) {
    // Nothing to do for the other segments: either their state does not age, or they catch up when
    // they are stepped.
    if (!fused.needs_sweep) continue;
    fused.optimizer->AgeState(context_.step,
                              absl::MakeSpan(row + fused.state_offset, fused.optimizer_state_size));
  }
}

// Only segments that need a sweep are stepped.
void RowUpdater::Step::Sweep(float* rows, size_t stride, size_t count) {
  if (!context_.finite) {
    for (size_t i = 0; i < count; ++i) SkipStepOf(rows + i * stride);
    return;
  }
  context_.sample_count = 0;
  // Rows are swept in blocks, one segment after another. A block of this size stays in the L1 cache
  // until its last segment is done.
  constexpr size_t kCachedFloats = 4096;
  const size_t rows_at_once = std::max<size_t>(kCachedFloats / stride, 1);
  for (size_t at = 0; at < count; at += rows_at_once) {
    float* const first = rows + at * stride;
    const size_t n = std::min(rows_at_once, count - at);
    const float* learning_rate = learning_rates_.data();
    for (const FusedSegments& fused : updater_.fused_) {
      const float rate = *learning_rate++;
      if (!fused.needs_sweep) continue;
      context_.learning_rate = rate;
      if (fused.rule->OnlyDecaysIdleRows() &&
          fused.optimizer->StepDecayed(context_, fused.rule->L2OfIdleRows(), clip_factor_,
                                       {first + fused.value_offset, first + fused.state_offset,
                                        static_cast<size_t>(fused.dim), stride, n})) {
        continue;
      }
      for (size_t i = 0; i < n; ++i) SweepSegment(fused, rate, first + i * stride);
    }
  }
}

void RowUpdater::Step::SweepSegment(const FusedSegments& fused, float learning_rate, float* row) {
  // A gradient of 0 stays 0 unless the rule has dense L2.
  const float* gradient = zeros_.data();
  if (fused.rule->IsDense()) {
    PrepareSegment(fused, gradient, row);
    if (clip_factor_ != 1) {
      for (float& value : NormalisedOf(fused)) value *= clip_factor_;
    }
    gradient = normalised_.data();
  }
  StepOptimizer(fused, learning_rate, gradient, row);
}

void RowUpdater::Step::SkipStepOf(float* row) const {
  for (const FusedSegments& fused : updater_.fused_) {
    if (fused.last_step_offset == kNoOffset) continue;
    float& last_step = row[fused.last_step_offset];
    last_step = SkipStep(last_step);
  }
}

absl::Span<float> RowUpdater::Step::NormalisedOf(const FusedSegments& fused) {
  return absl::MakeSpan(normalised_.data() + fused.value_offset, fused.dim);
}

double RowUpdater::Step::IdleSquares(float* row) {
  context_.sample_count = 0;
  double squares = 0;
  for (const FusedSegments& fused : updater_.fused_) {
    // Prepare must not change the row here. Prepare changes rows only for L2 of mode TOUCHED, where
    // it records a step in them, and rules with this mode are not dense.
    if (!fused.rule->IsDense()) continue;
    PrepareSegment(fused, zeros_.data(), row);
    for (const float value : NormalisedOf(fused)) squares += static_cast<double>(value) * value;
  }
  return squares;
}

// Does not change the row. A null `row` stands for an absent row.
double RowUpdater::Step::Squares(uint64_t key, const float* gradient,
                                 absl::optional<uint32_t> sample_count, const float* row) {
  // Works on a copy, because Prepare may record in the row that L2 was added, and only the real
  // step may do that.
  copy_.resize(updater_.layout_.num_floats());
  if (row == nullptr) {
    updater_.InitRow(key, copy_.data());
  } else {
    std::copy_n(row, copy_.size(), copy_.data());
  }
  context_.sample_count = sample_count;
  Prepare(gradient, copy_.data());
  // Summed in the order of the values, so that the sum of a row has the same bits wherever it is
  // computed.
  double squares = 0;
  for (const float value : normalised_) squares += static_cast<double>(value) * value;
  return squares;
}

}  // namespace satrap
