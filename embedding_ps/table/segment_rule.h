// A SegmentRule processes the gradient of a segment before the optimizer gets it (normalisation,
// CowClip, L2, clipping by norm), and the values after the step (weight bound). SegmentConfig in
// proto/table.proto has the formulas.
//
// Thread-safe: const, owns no memory of rows.

#ifndef SATRAP_EMBEDDING_PS_TABLE_SEGMENT_RULE_H_
#define SATRAP_EMBEDDING_PS_TABLE_SEGMENT_RULE_H_

#include <cstddef>

#include "embedding_ps/optimizer/sparse_optimizer.h"
#include "proto/table.pb.h"

namespace satrap {

// to[i] = factor * from[i] for n values. REQUIRES: no overlap
void WriteScaled(float factor, const float* __restrict from, float* __restrict to, size_t n);

class SegmentRule {
 public:
  // REQUIRES: `config` is in range (CheckTable)
  explicit SegmentRule(const SegmentConfig& config);

  // Whether Prepare only multiplies by the inverse normalizer.
  bool OnlyNormalises() const { return l2_ == 0 && clip_norm_ == 0 && !cow_clips_; }
  // Whether prepared value i depends only on gradient i and value i, so that neighbouring segments
  // with equal rules may be prepared as one.
  bool IsElementwise() const { return clip_norm_ == 0 && !cow_clips_ && !KeepsL2Step(); }
  // Whether Prepare reads context.sample_count or context.part_share.
  bool NeedsSampleCount() const {
    return cow_clips_ || (l2_ > 0 && l2_mode_ == SegmentConfig::OCCURRENCE);
  }
  bool NeedsPartShare() const { return clip_norm_ > 0; }
  // Whether the row keeps one more float for the segment, which starts at 0: the last step that
  // added L2 (row_step.h).
  bool KeepsL2Step() const { return l2_mode_ == SegmentConfig::TOUCHED; }
  // Whether a step only decays an idle row: the prepared gradient is L2OfIdleRows() times the
  // value, and no bound is applied after the step.
  bool OnlyDecaysIdleRows() const {
    const bool clips = cow_clips_ && form_ != CowClipConfig::PAPER;
    return clip_norm_ == 0 && weight_bound_ == 0 && !(IsDense() && clips);
  }
  float L2OfIdleRows() const { return IsDense() ? l2_ : 0; }
  // Whether idle rows have gradients, too.
  bool IsDense() const { return l2_mode_ == SegmentConfig::DENSE; }

  // Writes to `prepared` what the optimizer gets for `gradient`, a sum over samples. All arrays are
  // [dim]. `l2_step` points to the float that the row keeps if KeepsL2Step(), and is not used
  // otherwise. A sample_count of 0 means that no sample holds the row. Then only L2 of mode DENSE
  // is added, and CowClip counts one sample, as its released code does. REQUIRES: no overlap; the
  // counts and shares that the rule needs are known
  void Prepare(const StepContext& context, float inverse_normalizer, const float* gradient,
               const float* values, float* l2_step, float* prepared, size_t dim) const;
  bool HasBound() const { return weight_bound_ > 0; }
  // Applies the weight bound, if there is one.
  void Bound(float* values, size_t dim) const;

 private:
  // The values times this factor are added to this step's gradient.
  float L2Of(const StepContext& context, float inverse_normalizer, float* l2_step) const;
  // The norm to which CowClip scales gradients down.
  double CowLimit(const StepContext& context, const float* values, size_t dim) const;

  const float l2_;
  const SegmentConfig::L2Mode l2_mode_;
  const float clip_norm_;
  const float weight_bound_;
  const bool cow_clips_;
  const CowClipConfig::Form form_;
  const double ratio_;
  const double floor_;
};

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_PS_TABLE_SEGMENT_RULE_H_
