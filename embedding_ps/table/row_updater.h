// A RowUpdater is the configuration of a table in executable form: how a new row is initialised and
// how a gradient changes a row.
//
// Thread-safe: const, owns no memory of rows. A `row` is layout().num_floats() floats.

#ifndef SATRAP_EMBEDDING_PS_TABLE_ROW_UPDATER_H_
#define SATRAP_EMBEDDING_PS_TABLE_ROW_UPDATER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "common/numeric/exact_sum.h"
#include "embedding_ps/initializer/initializer.h"
#include "embedding_ps/optimizer/sparse_optimizer.h"
#include "embedding_ps/table/row_layout.h"
#include "embedding_ps/table/segment_rule.h"
#include "proto/table.pb.h"

namespace satrap {

class RowUpdater {
 private:
  struct FusedSegments;

 public:
  // What one pass of a step does to rows (step_of_table.h). Holds the constants of the step, which
  // are computed once, and room for one normalised gradient. Not thread-safe.
  class Step {
   public:
    // `update` has the fields that are the same for the whole update; its other fields are
    // overwritten for each key and segment. The learning rate schedule follows update.step, the
    // run's step. Rows count `own_step` instead, which leaves out the steps in which the table was
    // frozen. If `squares` is null, the pass changes rows. Otherwise it only adds to *squares the
    // squares of the gradients that the optimizers would get with a clip_factor of 1.
    Step(const RowUpdater& updater, const StepContext& update, int64_t own_step,
         ExactSum* squares = nullptr);
    bool changes_rows() const { return squares_ == nullptr; }
    // Whether the pass visits idle rows, too (only with semantics GLOBAL). It visits them for one
    // of three purposes: to step them; to record a step that is not finite, which they would
    // otherwise count as missed; or to add the squares of the gradients that L2 of mode DENSE gives
    // them.
    bool has_idle_rows() const;

    // Visits the row of `key`: applies the rule of each segment (segment_rule.h), then its
    // optimizer. `gradient`, [num_values], is a sum over samples. A null `row` stands for an absent
    // row, and is allowed only if the pass changes no rows. REQUIRES: sample_count is known if
    // needs_sample_counts()
    void VisitRow(uint64_t key, const float* gradient, absl::optional<uint32_t> sample_count,
                  float* row);
    // Visits `count` idle rows, which begin `stride` floats apart. REQUIRES: has_idle_rows()
    void VisitIdleRows(float* rows, size_t stride, size_t count);
    // Changes a newly created row to what it would be if it had existed from step 0 on. Does
    // nothing unless semantics are GLOBAL.
    void AgeNewRow(float* row) const;

   private:
    void Apply(const float* gradient, absl::optional<uint32_t> sample_count, float* row);
    void Sweep(float* rows, size_t stride, size_t count);
    double Squares(uint64_t key, const float* gradient, absl::optional<uint32_t> sample_count,
                   const float* row);
    double IdleSquares(float* row);
    void Prepare(const float* gradient, float* row);
    void PrepareSegment(const FusedSegments& fused, const float* gradient, float* row);
    void StepOptimizer(const FusedSegments& fused, float learning_rate, const float* gradient,
                       float* row);
    void SweepSegment(const FusedSegments& fused, float learning_rate, float* row);
    void SkipStepOf(float* row) const;
    void CatchUp(const FusedSegments& fused, float* row) const;
    absl::Span<float> NormalisedOf(const FusedSegments& fused);

    const RowUpdater& updater_;
    StepContext context_;
    const float inverse_normalizer_;
    const float clip_factor_;
    ExactSum* const squares_;
    absl::InlinedVector<float, 4> learning_rates_;  // one for each of fused_
    absl::InlinedVector<float, 64> normalised_;
    absl::InlinedVector<float, 64> zeros_;  // the gradient of a sweep
    std::vector<float> copy_;               // a copy of a row, for Squares
  };

  // INVALID_ARGUMENT, naming the field, if `config` is not valid.
  static absl::StatusOr<RowUpdater> Create(
      const TableConfig& config, uint64_t seed,
      SparseOptimizerFactory new_optimizer = NewSparseOptimizer);

  const RowLayout& layout() const { return layout_; }
  // Whether a segment's rule or optimizer needs the sample count of each key.
  bool needs_sample_counts() const { return needs_sample_counts_; }
  // Whether a segment's rule needs StepContext.part_share.
  bool needs_part_share() const { return needs_part_share_; }
  // Whether the table's gradients count in the norm of JobConfig.gradient_clip_norm and are
  // multiplied by its factor. False with normalisation NONE: such gradients are not divided by the
  // normalizer either.
  bool is_clipped() const { return normalises_; }

  // Writes the initial values, [num_values], of the row of `key`.
  void InitValues(uint64_t key, float* values) const;
  // Writes the initial values and the initial state.
  void InitRow(uint64_t key, float* row) const;

 private:
  struct SegmentPolicy {
    Initializer initializer;
    std::unique_ptr<const SparseOptimizer> optimizer;
    SegmentRule rule;
    int optimizer_state_size;  // the first floats of the segment's state
    // The segment's state is followed by up to two floats: if rule.KeepsL2Step(), the last step
    // that added L2; then, if keeps_last_step, the last step that was taken (row_step.h).
    bool keeps_last_step;
    bool needs_sweep;
  };
  // Neighbouring segments that are stepped by one call. Either this is a single segment, or all
  // have the same element-wise optimizer and rule.
  struct FusedSegments {
    const SparseOptimizer* optimizer;
    const SegmentRule* rule;
    bool has_bound;  // rule->HasBound(), kept here: most tables have none
    bool keeps_last_step, needs_sweep;
    float learning_rate;
    int value_offset;
    int dim;
    int state_offset;
    int optimizer_state_size;
    int last_step_offset;  // in the row; kNoOffset: there is none
  };
  static constexpr int kNoOffset = -1;
  RowUpdater() = default;
  void FuseSegments(const TableConfig& config);
  int LastStepOffset(const TableConfig& config, int segment) const;

  RowLayout layout_;
  std::vector<SegmentPolicy> segments_;
  std::vector<FusedSegments> fused_;
  bool needs_sample_counts_ = false;
  bool needs_part_share_ = false;
  bool is_global_ = false;
  bool is_dense_ = false;       // whether any segment's rule is dense
  bool needs_sweep_ = false;    // whether any segment needs a sweep
  bool has_last_step_ = false;  // whether any segment keeps one; only with GLOBAL
  LearningRateSchedule schedule_;
  bool normalises_ = true;       // gradients are divided by the step's normalizer
  bool only_normalises_ = true;  // no rule does more than normalise
};

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_PS_TABLE_ROW_UPDATER_H_
