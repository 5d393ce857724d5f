// A TableShard is a part of an embedding table under one lock: index and arena. EmbeddingTable
// decides which keys are its.
//
// Every call takes the positions, in arrays that cover the whole request, of the keys that are this
// shard's; it locks once, and prefetches index and rows some keys ahead. Thread-safe.

#ifndef SATRAP_EMBEDDING_PS_TABLE_TABLE_SHARD_H_
#define SATRAP_EMBEDDING_PS_TABLE_TABLE_SHARD_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/mutex.h"
#include "embedding_ps/table/row_arena.h"
#include "embedding_ps/table/row_index.h"
#include "embedding_ps/table/row_rule.h"

namespace satrap {

// What Lookup answers for a key without a row.
enum class AbsentRows {
  kInitialValues,  // training: what Update would create the row with
  kZeros,          // evaluation
};

class TableShard {
 public:
  // `rule` is not owned and outlives the shard. `phase`, in [0, 1): as of RowIndex and RowArena;
  // different for the shards of a table.
  TableShard(const RowRule* rule, size_t reserve_rows, double phase);

  // As the methods of EmbeddingTable, for the keys at `positions`.
  void Lookup(absl::Span<const uint64_t> keys, absl::Span<const uint32_t> positions,
              AbsentRows mode, float* values, uint8_t* presence) const EXCLUDES(mutex_);
  int64_t Update(absl::Span<const uint64_t> keys, absl::Span<const uint32_t> positions,
                 const float* gradients, absl::Span<const uint32_t> sample_counts,
                 RowRule::Step* step) EXCLUDES(mutex_);
  int64_t CreateRows(absl::Span<const uint64_t> keys, absl::Span<const uint32_t> positions)
      EXCLUDES(mutex_);
  void ReadRows(absl::Span<const uint64_t> keys, absl::Span<const uint32_t> positions,
                float* rows) const EXCLUDES(mutex_);
  void WriteRows(absl::Span<const uint64_t> keys, absl::Span<const uint32_t> positions,
                 const float* rows) EXCLUDES(mutex_);

  // In the order of the index.
  void AppendKeys(int first_partition, int last_partition, std::vector<uint64_t>* keys) const
      EXCLUDES(mutex_);
  void Clear() EXCLUDES(mutex_);
  int64_t rows() const EXCLUDES(mutex_);
  int64_t bytes() const EXCLUDES(mutex_);

 private:
  // The caller's array [request keys, width] that row i is copied to or stepped by.
  struct Companion {
    const float* floats;
    size_t width;
  };
  // Calls visit(position, row) for each position in turn, row null if absent, with the first
  // `touched_bytes` of the row and its part of `companion` in the cache. `absent(hash)` is called
  // earlier for an absent key and may make its row and return it.
  template <typename Absent, typename Visitor>
  void ForEachRow(absl::Span<const uint64_t> keys, absl::Span<const uint32_t> positions,
                  size_t touched_bytes, const Companion& companion, Absent absent,
                  Visitor visit) const REQUIRES(mutex_);
  // The row of an absent key, made now; all zero unless `init`.
  float* AddRow(uint64_t hash, bool init) REQUIRES(mutex_);

  const RowRule& rule_;
  const double phase_;
  mutable Mutex mutex_;
  RowIndex index_ GUARDED_BY(mutex_);
  RowArena arena_ GUARDED_BY(mutex_);
};

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_PS_TABLE_TABLE_SHARD_H_
