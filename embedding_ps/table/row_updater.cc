#include "embedding_ps/table/row_updater.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
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

SATRAP_VECTORIZE_SAME_BITS void ScaleAndDecay(float factor, const float* __restrict from, float l2,
                                              const float* __restrict values, float* __restrict to,
                                              size_t n) {
  for (size_t i = 0; i < n; ++i) to[i] = factor * from[i] + l2 * values[i];
}

// NaN stays NaN: clamping must not hide a broken model.
SATRAP_VECTORIZE_SAME_BITS void Clamp(float bound, float* __restrict values, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    const float low = values[i] < -bound ? -bound : values[i];
    values[i] = low > bound ? bound : low;
  }
}

// Not vectorised, so that the order of summation is the same on every CPU.
double Norm(const float* values, size_t n) {
  double squares = 0;
  for (size_t i = 0; i < n; ++i) squares += static_cast<double>(values[i]) * values[i];
  return std::sqrt(squares);
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
    layout.push_back({segment.dim(), (*optimizer)->StateSize(segment.dim())});
    updater.needs_sample_counts_ |= (*optimizer)->NeedsSampleCount();
    updater.segments_.push_back({*std::move(initializer), *std::move(optimizer)});
  }
  updater.layout_ = RowLayout(std::move(layout));
  updater.FuseSegments(config);
  updater.warmup_steps_ = config.learning_rate_schedule().warmup_steps();
  updater.normalises_ = config.normalisation() == GLOBAL_BATCH;
  updater.l2_ = config.l2();
  updater.gradient_clip_norm_ = config.gradient_clip_norm();
  updater.weight_bound_ = config.weight_bound();
  return updater;
}

void RowUpdater::FuseSegments(const TableConfig& config) {
  // Fewer, longer calls are faster: a segment `linear` of one value beside an embedding costs
  // almost nothing if both are stepped at once.
  std::string before;  // the optimizer of the segment before
  for (int i = 0; i < config.segments_size(); ++i) {
    const SparseOptimizerConfig& optimizer = config.segments(i).optimizer();
    const RowLayout::Segment& at = layout_.segments()[i];
    std::string text = optimizer.SerializeAsString();
    if (i > 0 && text == before && segments_[i].optimizer->IsElementwise()) {
      fused_.back().at.dim += at.dim;
      fused_.back().at.state_size += at.state_size;
    } else {
      fused_.push_back({segments_[i].optimizer.get(), optimizer.learning_rate(), at});
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
    segments_[i].optimizer->InitState(absl::MakeSpan(row + at.state_offset, at.state_size));
  }
}

RowUpdater::Step::Step(const RowUpdater& updater, const StepContext& update)
    : updater_(updater),
      context_(update),
      inverse_normalizer_(updater.normalises_ ? 1 / update.normalizer : 1) {
  // The schedule is evaluated once for the update, not for each key.
  const double warmup =
      update.step + 1 < updater.warmup_steps_
          ? static_cast<double>(update.step + 1) / static_cast<double>(updater.warmup_steps_)
          : 1;
  for (const FusedSegments& fused : updater.fused_) {
    learning_rates_.push_back(
        static_cast<float>(fused.learning_rate * warmup * update.learning_rate_factor));
  }
  normalised_.resize(updater.layout_.num_values());
}

const float* RowUpdater::Step::Normalise(const float* gradient, const float* row) {
  const size_t n = normalised_.size();
  float* const normalised = normalised_.data();
  if (updater_.l2_ > 0) {
    ScaleAndDecay(inverse_normalizer_, gradient, updater_.l2_, row, normalised, n);
  } else {
    Scale(inverse_normalizer_, gradient, normalised, n);
  }
  if (updater_.gradient_clip_norm_ > 0) {
    const double norm = Norm(normalised, n);
    if (norm > updater_.gradient_clip_norm_) {
      const float factor = static_cast<float>(updater_.gradient_clip_norm_ / norm);
      for (size_t i = 0; i < n; ++i) normalised[i] *= factor;
    }
  }
  return normalised;
}

void RowUpdater::Step::Apply(const float* gradient, absl::optional<uint32_t> sample_count,
                             float* row) {
  // L2 reads the values from before the step; the bound applies to those after it.
  const float* const normalised = Normalise(gradient, row);
  context_.sample_count = sample_count;
  const float* learning_rate = learning_rates_.data();
  for (const FusedSegments& fused : updater_.fused_) {
    const RowLayout::Segment& at = fused.at;
    context_.learning_rate = *learning_rate++;
    fused.optimizer->Step(context_, absl::MakeConstSpan(normalised + at.value_offset, at.dim),
                          absl::MakeSpan(row + at.value_offset, at.dim),
                          absl::MakeSpan(row + at.state_offset, at.state_size));
  }
  if (updater_.weight_bound_ > 0) Clamp(updater_.weight_bound_, row, normalised_.size());
}

}  // namespace satrap
