// A StepOfTable is one pass of a step over the rows of a table: first over those that samples of
// the step hold, then over the idle rows, which no sample holds. A pass either takes the step, or
// only sums the squares of the gradients that the optimizers would get (gradient_clip_norm).
//
//   StepOfTable step(table, context);
//   step.Add(keys, gradients, sample_counts);
//   for each shard, if step.has_idle_rows(): step.FinishIdleRows(shard);
//
// Not thread-safe, because it has room for only one gradient. But several passes of the same step
// may run at the same time, such as one for each shard.

#ifndef SATRAP_EMBEDDING_PS_TABLE_STEP_OF_TABLE_H_
#define SATRAP_EMBEDDING_PS_TABLE_STEP_OF_TABLE_H_

#include <cstdint>

#include "absl/types/span.h"
#include "common/numeric/exact_sum.h"
#include "embedding_ps/optimizer/sparse_optimizer.h"
#include "embedding_ps/table/embedding_table.h"
#include "embedding_ps/table/row_updater.h"

namespace satrap {

class StepOfTable {
 public:
  // If `squares` is null, the pass takes the step. Otherwise no row changes, and the pass adds to
  // *squares the squares of the gradients that the optimizers would get with a clip_factor of 1. It
  // adds nothing if the table is frozen, or if the common clipping leaves its gradients out
  // (RowUpdater::is_clipped). `table` and `squares` are not owned and must outlive the pass.
  StepOfTable(EmbeddingTable* table, const StepContext& context, ExactSum* squares = nullptr);

  // Visits the rows of `keys`. The gradient of keys[i] is row i of `gradients`, [keys.size(),
  // num_values], a sum over samples. If the pass takes the step, absent rows are created first; the
  // result is the number of rows created. Rows of a frozen table are created but take no step.
  // `sample_counts`: the number of samples that hold each key; empty if not known. REQUIRES: keys
  // are unique, normalizer > 0, sizes agree, and if needs_sample_counts(), sample_counts are given
  // and above 0
  int64_t Add(absl::Span<const uint64_t> keys, absl::Span<const float> gradients,
              absl::Span<const uint32_t> sample_counts);

  // Whether idle rows take part, so that FinishIdleRows must be called for each shard after all
  // keys of the step were added. Only with semantics GLOBAL.
  bool has_idle_rows() const { return !table_.config().frozen() && step_.has_idle_rows(); }
  // Visits the idle rows of a shard: those that no Add, of any pass, has visited since the last
  // call of this function. Their gradient is 0, to which L2 of mode DENSE is added. If the step is
  // not finite, no value changes, and the rows do not count the step as missed. REQUIRES:
  // has_idle_rows(), and no Add is running
  void FinishIdleRows(int shard);

 private:
  EmbeddingTable& table_;
  const double normalizer_;
  const bool takes_step_;
  RowUpdater::Step step_;
};

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_PS_TABLE_STEP_OF_TABLE_H_
