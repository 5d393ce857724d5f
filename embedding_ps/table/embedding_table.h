// An EmbeddingTable maps 64-bit keys to rows: the values of all segments and their optimizer state.
// The caller decides which of the job's keys it holds.
//
// Thread-safe. Keys are spread over shards, each with its own lock. A call locks one shard at a
// time, each once, so it is atomic for each row but not across rows.

#ifndef SATRAP_EMBEDDING_PS_TABLE_EMBEDDING_TABLE_H_
#define SATRAP_EMBEDDING_PS_TABLE_EMBEDDING_TABLE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "embedding_ps/optimizer/sparse_optimizer.h"
#include "embedding_ps/table/row_layout.h"
#include "embedding_ps/table/row_updater.h"
#include "embedding_ps/table/table_shard.h"
#include "proto/table.pb.h"

namespace satrap {

class EmbeddingTable {
 public:
  struct Options {
    uint64_t seed = 1;         // of initial values
    int shards = 16;           // 1 to kMaxShards (common/config/ranges.h)
    int64_t reserve_rows = 0;  // expected in this process; memory is committed on touch
    SparseOptimizerFactory new_optimizer = NewSparseOptimizer;
  };
  // INVALID_ARGUMENT, naming the field, if `config` or `options` is not valid.
  static absl::StatusOr<std::unique_ptr<EmbeddingTable>> Create(const TableConfig& config,
                                                                const Options& options);

  const TableConfig& config() const { return config_; }
  const RowLayout& layout() const { return updater_.layout(); }
  // Whether Update needs sample counts.
  bool needs_sample_counts() const { return updater_.needs_sample_counts(); }

  // Copies the values of `keys` (any order, repeats allowed) to `values`, [keys.size(),
  // num_values]: row i belongs to keys[i]. `mode` says what an absent row reads as. Never changes
  // the table. Bit i % 8 of presence[i / 8] is set if row i exists; bits past the last key are 0.
  // REQUIRES: values.size() == keys.size() * num_values, presence.size() == (keys.size() + 7) / 8
  void Lookup(absl::Span<const uint64_t> keys, AbsentRows mode, absl::Span<float> values,
              absl::Span<uint8_t> presence) const;

  // Applies one optimizer step to each of `keys` with row i of `gradients`, [keys.size(),
  // num_values], sums over samples. Absent rows are created first. `sample_counts`: the samples
  // that hold each key; empty if not known. Returns the number of rows created.
  // REQUIRES: keys are unique, context.normalizer > 0, sizes agree, and if
  // needs_sample_counts(), sample_counts are given and above 0
  int64_t Update(absl::Span<const uint64_t> keys, absl::Span<const float> gradients,
                 absl::Span<const uint32_t> sample_counts, const StepContext& context);

  // Creates the rows of those `keys` that have none, as Update does before its step. Returns the
  // number of rows created. REQUIRES: keys are unique
  int64_t CreateRows(absl::Span<const uint64_t> keys);

  // The keys of partitions [first, last], ascending.
  std::vector<uint64_t> Keys(int first_partition, int last_partition) const;
  // Copies whole rows to `rows`, [keys.size(), num_floats]. REQUIRES: every key is present.
  void ReadRows(absl::Span<const uint64_t> keys, absl::Span<float> rows) const;
  // Creates or overwrites the rows of `keys`. REQUIRES: keys are unique, rows.size() == keys.size()
  // * num_floats
  void WriteRows(absl::Span<const uint64_t> keys, absl::Span<const float> rows);
  // Forgets all rows.
  void Clear();

  // Both are approximate while updates run.
  int64_t rows() const;
  // Index, metadata and committed rows.
  int64_t bytes() const;

 private:
  EmbeddingTable(const TableConfig& config, const Options& options, RowUpdater updater);
  // Calls visit(shard, positions) for each shard that has keys; positions are the indices in `keys`
  // of the shard's keys, ascending.
  template <typename Visitor>
  void ForEachShard(absl::Span<const uint64_t> keys, Visitor visit) const;

  const TableConfig config_;
  const RowUpdater updater_;
  std::vector<uint16_t> shard_of_partition_;
  std::vector<std::unique_ptr<TableShard>> shards_;
};

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_PS_TABLE_EMBEDDING_TABLE_H_
