#include "embedding_ps/table_sweep.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <utility>
#include <vector>

#include "common/thread/mutex.h"
#include "embedding_ps/table/step_of_table.h"

namespace satrap {
namespace {

struct Shard {
  EmbeddingTable* table;
  int shard;
};

// The shards of the tables whose idle rows the pass visits; `squares` as for StepOfTable.
std::vector<Shard> ShardsToVisit(absl::Span<const std::unique_ptr<EmbeddingTable>> tables,
                                 const StepContext& context, ExactSum* squares) {
  std::vector<Shard> shards;
  for (const auto& table : tables) {
    if (!StepOfTable(table.get(), context, squares).has_idle_rows()) continue;
    for (int i = 0; i < table->num_shards(); ++i) shards.push_back({table.get(), i});
  }
  return shards;
}

struct Pass {
  std::vector<Shard> shards;
  absl::AnyInvocable<void(const Shard&) const> visit;
  std::atomic<size_t> next{0};
  std::atomic<size_t> left{0};  // shards that are not visited yet
  Task done;
};

// A task may start after all shards were visited. Such a task must not touch a table.
void Run(Pass& pass) {
  for (size_t i; (i = pass.next++) < pass.shards.size();) {
    pass.visit(pass.shards[i]);
    if (--pass.left == 0) pass.done();
  }
}

// Calls visit(shard) once for each shard, in `threads` tasks of `executor` at the same time, and
// then calls done().
void VisitShards(std::vector<Shard> shards, int threads, Executor* executor,
                 absl::AnyInvocable<void(const Shard&) const> visit, Task done) {
  if (shards.empty()) return done();
  const auto pass = std::make_shared<Pass>();
  pass->left = shards.size();
  pass->visit = std::move(visit);
  pass->done = std::move(done);
  const size_t tasks = std::min(shards.size(), static_cast<size_t>(std::max(threads, 1)));
  pass->shards = std::move(shards);
  for (size_t i = 0; i < tasks; ++i) executor->Post([pass] { Run(*pass); });
}

struct Total {
  Mutex mutex;
  ExactSum squares GUARDED_BY(mutex);
};

}  // namespace

void SweepTables(absl::Span<const std::unique_ptr<EmbeddingTable>> tables,
                 const StepContext& context, int threads, Executor* executor, Task done) {
  VisitShards(
      ShardsToVisit(tables, context, /*squares=*/nullptr), threads, executor,
      [context](const Shard& at) { StepOfTable(at.table, context).FinishIdleRows(at.shard); },
      std::move(done));
}

void AddIdleSquares(absl::Span<const std::unique_ptr<EmbeddingTable>> tables,
                    const StepContext& context, int threads, Executor* executor,
                    const ExactSum& squares, absl::AnyInvocable<void(const ExactSum&)> done) {
  const auto total = std::make_shared<Total>();
  std::vector<Shard> shards;
  {
    MutexLock lock(&total->mutex);
    total->squares = squares;
    shards = ShardsToVisit(tables, context, &total->squares);
  }
  VisitShards(
      std::move(shards), threads, executor,
      [context, total](const Shard& at) {
        ExactSum of_shard;
        StepOfTable(at.table, context, &of_shard).FinishIdleRows(at.shard);
        MutexLock lock(&total->mutex);
        for (const double term : of_shard.Terms()) total->squares.Add(term);
      },
      [total, done = std::move(done)]() mutable {
        ExactSum all;
        {
          MutexLock lock(&total->mutex);
          all = total->squares;
        }
        done(all);
      });
}

}  // namespace satrap
