// An EmbeddingTable maps 64-bit keys to rows: the values of all segments and their optimizer state.
// The options say which keys of the job the table may hold. Every call REQUIRES that its keys are
// among these.
//
// Thread-safe. Keys are distributed over shards, each with its own lock. A call locks one shard at
// a time, and each shard once, so it is atomic for each row but not across rows.
//
// A cut is the content of the table at one moment, the mark. It is read while the table changes: a
// row that has not been read yet is copied out before it changes (shard_cut.h).
//
//   const uint64_t cut = table->BeginCut(budget);   // the mark
//   for each partition: while (table->ReadCut(cut, partition, ...) == CutRead::kMore) ...
//   table->EndCut(cut);

#ifndef SATRAP_EMBEDDING_PS_TABLE_EMBEDDING_TABLE_H_
#define SATRAP_EMBEDDING_PS_TABLE_EMBEDDING_TABLE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "embedding_ps/optimizer/sparse_optimizer.h"
#include "embedding_ps/table/row_layout.h"
#include "embedding_ps/table/row_updater.h"
#include "embedding_ps/table/table_options.h"
#include "embedding_ps/table/table_shard.h"
#include "proto/table.pb.h"

namespace satrap {

class EmbeddingTable {
 public:
  using Options = TableOptions;
  // INVALID_ARGUMENT, naming the field, if `config` or `options` is not valid.
  static absl::StatusOr<std::unique_ptr<EmbeddingTable>> Create(const TableConfig& config,
                                                                const Options& options);

  const TableConfig& config() const { return config_; }
  int first_partition() const { return first_partition_; }
  int last_partition() const { return last_partition_; }
  const RowLayout& layout() const { return updater_.layout(); }
  // Whether Update needs sample counts, and whether it reads StepContext.part_share.
  bool needs_sample_counts() const { return updater_.needs_sample_counts() && !config_.frozen(); }
  bool needs_part_share() const { return updater_.needs_part_share() && !config_.frozen(); }

  // Copies the values of `keys` (any order, repeats allowed) to `values`, [keys.size(),
  // num_values]: row i belongs to keys[i]. `mode` says which values an absent row has. Bit i % 8 of
  // presence[i / 8] is set if row i exists; bits after the last key are 0. Never changes the table.
  // REQUIRES: values.size() == keys.size() * num_values, presence.size() == (keys.size() + 7) / 8
  void Lookup(absl::Span<const uint64_t> keys, AbsentRows mode, absl::Span<float> values,
              absl::Span<uint8_t> presence) const;

  // Takes a step for the rows of `keys`. The arguments mean what they mean in StepOfTable::Add
  // (step_of_table.h). Returns the number of rows created.
  int64_t Update(absl::Span<const uint64_t> keys, absl::Span<const float> gradients,
                 absl::Span<const uint32_t> sample_counts, const StepContext& context);

  // Creates a row for each of `keys` that has none. The row is as an Update of this process's first
  // step creates it, before that Update steps it. Returns the number of rows created.
  // REQUIRES: keys are unique
  int64_t CreateRows(absl::Span<const uint64_t> keys);

  // The keys of partitions [first, last], ascending.
  std::vector<uint64_t> Keys(int first_partition, int last_partition) const;
  // Copies whole rows to `rows`, [keys.size(), num_floats]. REQUIRES: every key is present
  void ReadRows(absl::Span<const uint64_t> keys, absl::Span<float> rows) const;
  // Creates or overwrites the rows of `keys`. REQUIRES: keys are unique, rows.size() == keys.size()
  // * num_floats
  void WriteRows(absl::Span<const uint64_t> keys, absl::Span<const float> rows);
  // Removes all rows, and ends the cut in progress.
  void Clear();

  // Begins a cut of all rows and returns its number. The time that this takes does not depend on
  // the number of rows. An unfinished earlier cut is abandoned. `budget` limits the memory of the
  // rows that are copied out. REQUIRES: no other call that changes rows is running; otherwise the
  // rows of the cut may come from different moments
  uint64_t BeginCut(const std::shared_ptr<CopyBudget>& budget);
  // Reads the next rows of a partition, by ascending keys, to keys[*num_rows] and rows[*num_rows,
  // num_floats]: at most TableShard::kMaxCutRows and at most `max_rows`. kGone if another cut has
  // begun, the table was cleared, or the budget is exhausted. REQUIRES: calls for one partition do
  // not overlap; `partition` may hold keys of this table
  CutRead ReadCut(uint64_t cut, int partition, size_t max_rows, uint64_t* keys, float* rows,
                  size_t* num_rows);
  // Frees the copies. Does nothing if the cut has already ended.
  void EndCut(uint64_t cut);

  // Loading happens in two stages. AppendRows copies rows with ascending keys into the table, where
  // no call finds them yet. Several threads may do this at the same time, each with its own `Run`.
  // IndexShard then makes the rows of one shard visible; `runs` must be in the order of their keys.
  // INVALID_ARGUMENT, with nothing changed, if the keys of all runs together do not ascend.
  // REQUIRES: the table has no other rows, and is not changed meanwhile
  using Run = std::vector<std::vector<TableShard::AppendedRow>>;  // by shard
  void AppendRows(absl::Span<const uint64_t> keys, absl::Span<const float> rows, Run* run);
  absl::Status IndexShard(int shard, absl::Span<const Run* const> runs);
  int num_shards() const { return static_cast<int>(shards_.size()); }

  int64_t rows() const;   // approximate while updates run; so is bytes()
  int64_t bytes() const;  // index, metadata and committed rows

 private:
  friend class StepOfTable;

  EmbeddingTable(const TableConfig& config, const Options& options, RowUpdater updater);
  // Calls visit(shard, positions) for each shard to which some of `keys` belong. `positions` are
  // the indices of these keys in `keys`, ascending.
  template <typename Visitor>
  void ForEachShard(absl::Span<const uint64_t> keys, Visitor visit) const;
  // Visits the rows of `keys` with `step`. Returns the number of rows created.
  int64_t VisitRows(absl::Span<const uint64_t> keys, absl::Span<const float> gradients,
                    absl::Span<const uint32_t> sample_counts, RowUpdater::Step* step);
  int NthInShard(int partition) const {
    return (partition - first_partition_) / static_cast<int>(shards_.size());
  }
  // The table's own step number: the number of the run's step, minus the number of steps in which
  // the table was frozen.
  int64_t OwnStep(int64_t step) const { return step - frozen_steps_; }

  const TableConfig config_;
  const RowUpdater updater_;
  const int64_t first_step_, frozen_steps_;
  const int first_partition_, last_partition_;
  std::vector<uint16_t> shard_of_partition_;  // shards_.size(): held elsewhere
  std::atomic<uint64_t> last_cut_{0};
  std::vector<std::unique_ptr<TableShard>> shards_;
};

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_PS_TABLE_EMBEDDING_TABLE_H_
