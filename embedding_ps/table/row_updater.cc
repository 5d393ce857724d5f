#include "embedding_ps/table/row_updater.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/config/learning_rate_schedule.h"
#include "common/config/ranges.h"
#include "common/numeric/vectorize.h"

namespace satrap {
namespace {

absl::Status At(int segment, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat("segments[", segment, "].", status.message()));
}

SATRAP_VECTORIZE_SAME_BITS void Scale(float factor, const float* __restrict from,
                                      float* __restrict to, size_t n) {
  for (size_t i = 0; i < n; ++i) to[i] = factor * from[i];
}

// The settings by which a segment's values are stepped, as text.
std::string SteppedAlike(SegmentConfig segment) {
  segment.clear_name();
  segment.clear_dim();
  segment.clear_initializer();
  return segment.SerializeAsString();
}

}  // namespace

absl::StatusOr<RowUpdater> RowUpdater::Create(const TableConfig& config, uint64_t seed,
                                              SparseOptimizerFactory new_optimizer) {
  Problems problems;
  CheckTable(config, "", &problems);
  RETURN_IF_ERROR(problems.First());
  RowUpdater updater;
  std::vector<RowLayout::Segment> layout;
  for (int i = 0; i < config.segments_size(); ++i) {
    const SegmentConfig& segment = config.segments(i);
    auto initializer = Initializer::Create(segment.initializer(), seed, config.id(), i);
    if (!initializer.ok()) return At(i, initializer.status());
    auto optimizer = new_optimizer(segment.optimizer());
    if (!optimizer.ok()) return At(i, optimizer.status());
    const int state_size = (*optimizer)->StateSize(segment.dim());
    const SegmentRule rule(segment);
    layout.push_back({segment.dim(), state_size + (rule.KeepsL2Step() ? 1 : 0)});
    updater.needs_sample_counts_ |= (*optimizer)->NeedsSampleCount() || rule.NeedsSampleCount();
    updater.needs_part_share_ |= rule.NeedsPartShare();
    updater.only_normalises_ &= rule.OnlyNormalises();
    updater.segments_.push_back({*std::move(initializer), *std::move(optimizer), rule, state_size});
  }
  updater.layout_ = RowLayout(std::move(layout));
  updater.FuseSegments(config);
  updater.schedule_ = config.learning_rate_schedule();
  updater.normalises_ = config.normalisation() == GLOBAL_BATCH;
  return updater;
}

void RowUpdater::FuseSegments(const TableConfig& config) {
  // Fewer, longer calls are faster: a segment `linear` of one value beside an embedding costs
  // almost nothing if both are stepped at once.
  std::string before;  // of the segment before
  for (int i = 0; i < config.segments_size(); ++i) {
    const RowLayout::Segment& at = layout_.segments()[i];
    const SegmentPolicy& policy = segments_[i];
    std::string text = SteppedAlike(config.segments(i));
    if (i > 0 && text == before && policy.optimizer->IsElementwise() &&
        policy.rule.IsElementwise()) {
      fused_.back().dim += at.dim;
      fused_.back().optimizer_state_size += policy.optimizer_state_size;
    } else {
      fused_.push_back({policy.optimizer.get(), &policy.rule, policy.rule.HasBound(),
                        config.segments(i).optimizer().learning_rate(), at.value_offset, at.dim,
                        at.state_offset, policy.optimizer_state_size});
    }
    before = std::move(text);
  }
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
    if (segments_[i].rule.KeepsL2Step()) state[segments_[i].optimizer_state_size] = 0;
  }
}

RowUpdater::Step::Step(const RowUpdater& updater, const StepContext& update)
    : updater_(updater),
      context_(update),
      inverse_normalizer_(updater.normalises_ ? 1 / update.normalizer : 1) {
  // The schedule is evaluated once for the update, not for each key.
  const double scheduled = LearningRateFactor(updater.schedule_, update.step);
  for (const FusedSegments& fused : updater.fused_) {
    learning_rates_.push_back(
        static_cast<float>(fused.learning_rate * scheduled * update.learning_rate_factor));
  }
  normalised_.resize(updater.layout_.num_values());
}

void RowUpdater::Step::Prepare(const float* gradient, float* row) {
  if (updater_.only_normalises_) {
    Scale(inverse_normalizer_, gradient, normalised_.data(), normalised_.size());
    return;
  }
  for (const FusedSegments& fused : updater_.fused_) {
    fused.rule->Prepare(context_, inverse_normalizer_, gradient + fused.value_offset,
                        row + fused.value_offset,
                        row + fused.state_offset + fused.optimizer_state_size,
                        normalised_.data() + fused.value_offset, fused.dim);
  }
}

void RowUpdater::Step::Apply(const float* gradient, absl::optional<uint32_t> sample_count,
                             float* row) {
  // The rules read the values from before the step; the bound applies to those after it.
  context_.sample_count = sample_count;
  Prepare(gradient, row);
  const float* learning_rate = learning_rates_.data();
  for (const FusedSegments& fused : updater_.fused_) {
    context_.learning_rate = *learning_rate++;
    float* const values = row + fused.value_offset;
    fused.optimizer->Step(context_,
                          absl::MakeConstSpan(normalised_.data() + fused.value_offset, fused.dim),
                          absl::MakeSpan(values, fused.dim),
                          absl::MakeSpan(row + fused.state_offset, fused.optimizer_state_size));
    if (fused.has_bound) fused.rule->Bound(values, fused.dim);
  }
}

}  // namespace satrap
