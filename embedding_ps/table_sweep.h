// Visits the idle rows of tables with semantics GLOBAL, which no sample of a step holds, by passes
// of the step (StepOfTable). They take the step with a gradient of 0. With L2 of mode DENSE they
// also count in the norm of all gradients (JobConfig.gradient_clip_norm).
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

// Takes the step with the idle rows of those of `tables` that need it, `threads` shards at a time,
// in tasks of `executor`. Runs `done` once, when all are swept. If no table needs a sweep, `done`
// runs before this returns. The tables must outlive the tasks. REQUIRES: until `done` runs, nothing
// updates the tables
void SweepTables(absl::Span<const std::unique_ptr<EmbeddingTable>> tables,
                 const StepContext& context, int threads, Executor* executor, Task done);

// Visits, in the same way, those of `tables` whose idle rows have gradients. Runs `done` with
// `squares` plus the squares of these gradients. REQUIRES: a pass that sums squares has been given
// all keys of the step, and until `done` runs, nothing updates the tables
void AddIdleSquares(absl::Span<const std::unique_ptr<EmbeddingTable>> tables,
                    const StepContext& context, int threads, Executor* executor,
                    const ExactSum& squares, absl::AnyInvocable<void(const ExactSum&)> done);

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_PS_TABLE_SWEEP_H_
