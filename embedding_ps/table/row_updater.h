// A RowUpdater is a table's configuration made ready to run: how a new row is initialised and how a
// gradient changes a row.
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
 public:
  // One update's constants, computed once: learning rates, and room for one normalised gradient.
  // Not thread-safe.
  class Step {
   public:
    // `update`: the fields of the update; the others are overwritten for each key and segment.
    Step(const RowUpdater& updater, const StepContext& update);
    // Applies the step of `gradient` [num_values], a sum over samples, to `row`: each segment's
    // rule (segment_rule.h) and optimizer.
    // REQUIRES: sample_count is known if needs_sample_counts()
    void Apply(const float* gradient, absl::optional<uint32_t> sample_count, float* row);

   private:
    void Prepare(const float* gradient, float* row);

    const RowUpdater& updater_;
    StepContext context_;
    const float inverse_normalizer_;
    absl::InlinedVector<float, 4> learning_rates_;  // of fused_
    absl::InlinedVector<float, 64> normalised_;
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

  // Writes the initial values [num_values] of the row of `key`.
  void InitValues(uint64_t key, float* values) const;
  // Writes the initial values and the initial state.
  void InitRow(uint64_t key, float* row) const;

 private:
  struct SegmentPolicy {
    Initializer initializer;
    std::unique_ptr<const SparseOptimizer> optimizer;
    SegmentRule rule;
    int optimizer_state_size;  // the first floats of the segment's state; the L2 step follows
  };
  // Neighbouring segments that are stepped by one call: one segment, or several with the same
  // element-wise optimizer and rule.
  struct FusedSegments {
    const SparseOptimizer* optimizer;
    const SegmentRule* rule;
    bool has_bound;  // of the rule, at hand for the many tables without
    float learning_rate;
    int value_offset;
    int dim;
    int state_offset;
    int optimizer_state_size;
  };
  RowUpdater() = default;
  void FuseSegments(const TableConfig& config);

  RowLayout layout_;
  std::vector<SegmentPolicy> segments_;
  std::vector<FusedSegments> fused_;
  bool needs_sample_counts_ = false;
  bool needs_part_share_ = false;
  LearningRateSchedule schedule_;
  bool normalises_ = true;       // divides by the step's normalizer
  bool only_normalises_ = true;  // and no rule does more
};

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_PS_TABLE_ROW_UPDATER_H_
