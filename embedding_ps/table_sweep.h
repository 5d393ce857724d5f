// Visits the idle rows of tables with semantics GLOBAL, in passes of the step (StepOfTable). Idle
// rows take the step with a gradient of 0, or with the gradient of L2 of mode DENSE, which also
// counts in the norm of all gradients (JobConfig.gradient_clip_norm).
//
// Thread-safe: the functions depend only on their arguments.

#ifndef SATRAP_EMBEDDING_PS_TABLE_SWEEP_H_
#define SATRAP_EMBEDDING_PS_TABLE_SWEEP_H_

#include <memory>

#include "absl/functional/any_invocable.h"
#include "absl/types/span.h"
#include "common/numeric/exact_sum.h"
#include "common/thread/executor.h"
#include "embedding_ps/optimizer/sparse_optimizer.h"
#include "embedding_ps/table/embedding_table.h"

namespace satrap {

// Takes the step for the idle rows of all `tables` that need a sweep, `threads` shards at a time,
// in tasks of `executor`. Runs `done` once, after the last shard is swept. If no table needs a
// sweep, `done` runs before this returns. The tables must outlive the tasks. REQUIRES: until `done`
// runs, nothing updates the tables
void SweepTables(absl::Span<const std::unique_ptr<EmbeddingTable>> tables,
                 const StepContext& context, int threads, Executor* executor, Task done);

// Visits the idle rows of all `tables` in which they have gradients, in tasks as SweepTables does.
// Runs `done` with the sum of `squares` and the squares of these gradients. REQUIRES: a pass that
// sums squares has been given all keys of the step, and until `done` runs, nothing updates the
// tables
void AddIdleSquares(absl::Span<const std::unique_ptr<EmbeddingTable>> tables,
                    const StepContext& context, int threads, Executor* executor,
                    const ExactSum& squares, absl::AnyInvocable<void(const ExactSum&)> done);

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_PS_TABLE_SWEEP_H_
