#include "embedding_ps/table/segment_rule.h"

#include <algorithm>
#include <cmath>

#include "common/numeric/vectorize.h"
#include "embedding_ps/optimizer/row_step.h"

namespace satrap {

SATRAP_VECTORIZE_SAME_BITS void WriteScaled(float factor, const float* __restrict from,
                                            float* __restrict to, size_t n) {
  for (size_t i = 0; i < n; ++i) to[i] = factor * from[i];
}

namespace {

SATRAP_VECTORIZE_SAME_BITS void ScaleAndDecay(float factor, const float* __restrict from, float l2,
                                              const float* __restrict values, float* __restrict to,
                                              size_t n) {
  for (size_t i = 0; i < n; ++i) to[i] = factor * from[i] + l2 * values[i];
}

SATRAP_VECTORIZE_SAME_BITS void AddDecay(float l2, const float* __restrict values,
                                         float* __restrict to, size_t n) {
  for (size_t i = 0; i < n; ++i) to[i] += l2 * values[i];
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

void ScaleDownTo(double limit, float* gradient, size_t n) {
  const double norm = Norm(gradient, n);
  if (!(norm > limit)) return;
  const float factor = static_cast<float>(limit / norm);
  for (size_t i = 0; i < n; ++i) gradient[i] *= factor;
}

}  // namespace

SegmentRule::SegmentRule(const SegmentConfig& config)
    : l2_(config.l2()),
      l2_mode_(config.l2_mode()),
      clip_norm_(config.gradient_clip_norm()),
      weight_bound_(config.weight_bound()),
      cow_clips_(config.has_cow_clip()),
      form_(config.cow_clip().form()),
      ratio_(config.cow_clip().ratio()),
      floor_(config.cow_clip().floor()) {}

float SegmentRule::L2Of(const StepContext& context, float inverse_normalizer,
                        float* l2_step) const {
  if (l2_ == 0) return 0;
  if (l2_mode_ == SegmentConfig::OCCURRENCE) {
    return l2_ * static_cast<float>(*context.sample_count) * inverse_normalizer;
  }
  if (l2_mode_ == SegmentConfig::DENSE) return l2_;
  if (context.sample_count == 0u) return 0;
  // In hybrid mode the parts of a step come one by one. The first part that holds the row adds the
  // L2 of the whole step.
  if (StepsPassed(*l2_step, context.step) == 0) return 0;
  *l2_step = EncodedStep(context.step);
  return l2_;
}

double SegmentRule::CowLimit(const StepContext& context, const float* values, size_t dim) const {
  const double norm = Norm(values, dim);
  const double count = std::max(*context.sample_count, 1u);
  if (form_ == CowClipConfig::PAPER) return count * std::max(ratio_ * norm, floor_);
  const double least = ratio_ * std::sqrt(static_cast<double>(dim)) * floor_;
  return ratio_ * count * std::max(norm, least);
}

void SegmentRule::Prepare(const StepContext& context, float inverse_normalizer,
                          const float* gradient, const float* values, float* l2_step,
                          float* prepared, size_t dim) const {
  const float l2 = L2Of(context, inverse_normalizer, l2_step);
  // The two forms of CowClip differ in whether L2 is clipped together with the gradient.
  const bool l2_last = cow_clips_ && form_ == CowClipConfig::PAPER;
  if (l2 > 0 && !l2_last) {
    ScaleAndDecay(inverse_normalizer, gradient, l2, values, prepared, dim);
  } else {
    WriteScaled(inverse_normalizer, gradient, prepared, dim);
  }
  // Before L2 is added, the gradient of an idle row is 0, so no limit changes it. Computing two
  // norms would cost more than the rest of the rule.
  const bool is_zero = l2_last && context.sample_count == 0u;
  if (cow_clips_ && !is_zero) ScaleDownTo(CowLimit(context, values, dim), prepared, dim);
  if (l2 > 0 && l2_last) AddDecay(l2, values, prepared, dim);
  if (clip_norm_ > 0) ScaleDownTo(clip_norm_ * context.part_share, prepared, dim);
}

void SegmentRule::Bound(float* values, size_t dim) const {
  if (weight_bound_ > 0) Clamp(weight_bound_, values, dim);
}

}  // namespace satrap
