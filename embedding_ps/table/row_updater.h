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
  // The constants of one update, computed once: learning rates, and room for one normalised
  // gradient. Not thread-safe.
  class Step {
   public:
    // `update` has the fields that are the same for the whole update; its other fields are
    // overwritten for each key and segment. The learning rate schedule follows update.step, the
    // run's step. Rows count `own_step` instead, which leaves out the steps in which the table was
    // frozen.
    Step(const RowUpdater& updater, const StepContext& update, int64_t own_step);
    // Applies a step to `row`: for each segment its rule (segment_rule.h), then its optimizer.
    // `gradient`, [num_values], is a sum over samples. REQUIRES: sample_count is known if
    // needs_sample_counts()
    void Apply(const float* gradient, absl::optional<uint32_t> sample_count, float* row);
    // Changes a newly created row to what it would be if it had existed from step 0 on. Does
    // nothing unless semantics are GLOBAL.
    void AgeNewRow(float* row) const;
    // Takes a step with a gradient of 0 for `count` rows that no sample holds. The rows begin
    // `stride` floats apart. Only segments that need a sweep are stepped. If the step is not
    // finite, nothing is stepped; the rows only record the step, so that it does not count as
    // missed. REQUIRES: needs_sweep(finite)
    void Sweep(float* rows, size_t stride, size_t count);
    // The sum of the squares of what the optimizers would get for `gradient` with a clip_factor of
    // 1. `row` is null if the row is absent, and is not changed. REQUIRES: as Apply
    double Squares(uint64_t key, const float* gradient, absl::optional<uint32_t> sample_count,
                   const float* row);
    // As Squares, for an idle row, which no sample holds. The row is not changed. REQUIRES:
    // idle_rows_have_gradients()
    double IdleSquares(float* row);

   private:
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
  // Whether rows that no sample of a step holds must also be stepped (semantics GLOBAL). With
  // `finite` false: whether rows would otherwise count the step as missed.
  bool needs_sweep(bool finite) const { return finite ? needs_sweep_ : has_last_step_; }
  // Whether the table's gradients count in the norm of JobConfig.gradient_clip_norm and are
  // multiplied by its factor. False with normalisation NONE, because those gradients are not
  // divided by the normalizer.
  bool is_clipped() const { return normalises_; }
  // Whether rows that no sample of a step holds also have gradients that count in the norm of
  // gradient_clip_norm.
  bool idle_rows_have_gradients() const { return is_clipped() && is_global_ && is_dense_; }

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
    // Up to two floats follow the segment's state: the last step that added L2 if
    // rule.KeepsL2Step(), then the last step that was taken (row_step.h) if keeps_last_step.
    bool keeps_last_step;
    bool needs_sweep;
  };
  // Neighbouring segments that one call steps: a single segment, or several with the same
  // element-wise optimizer and rule.
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
