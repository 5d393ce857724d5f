// A TableShard is the part of an embedding table under one lock: an index and an arena.
// EmbeddingTable decides which keys belong to which shard.
//
// Every call takes the arrays of the whole request and the positions of this shard's keys in them.
// It locks once, and fetches index lines and rows for a block of keys at a time. Thread-safe.

#ifndef SATRAP_EMBEDDING_PS_TABLE_TABLE_SHARD_H_
#define SATRAP_EMBEDDING_PS_TABLE_TABLE_SHARD_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/thread/mutex.h"
#include "embedding_ps/table/row_arena.h"
#include "embedding_ps/table/row_index.h"
#include "embedding_ps/table/row_updater.h"

namespace satrap {

// What Lookup returns for a key without a row.
enum class AbsentRows {
  kInitialValues,  // training: what Update would create the row with
  kZeros,          // evaluation
};

class TableShard {
 public:
  // `updater` is not owned and outlives the shard. `phase`, in [0, 1), differs between the shards
  // of a table: see RowIndex and RowArena.
  TableShard(const RowUpdater* updater, size_t reserve_rows, double phase);

  // As the methods of EmbeddingTable, for the keys at `positions`.
  void Lookup(absl::Span<const uint64_t> keys, absl::Span<const uint32_t> positions,
              AbsentRows mode, float* values, uint8_t* presence) const EXCLUDES(mutex_);
  int64_t Update(absl::Span<const uint64_t> keys, absl::Span<const uint32_t> positions,
                 const float* gradients, absl::Span<const uint32_t> sample_counts,
                 RowUpdater::Step* step) EXCLUDES(mutex_);
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
  // The array [request keys, width] of the caller whose row i goes with key i: values to fill, or
  // gradients.
  struct CallerArray {
    const float* floats;
    size_t width;
  };
  // Calls visit(position, row) for each position in turn; row is null if the key is absent. Before
  // that it brings the first `touched_bytes` of the row, and its part of `caller_array`, into the
  // cache. absent(hash) is called earlier for each absent key; it may create the row and return it.
  template <typename Absent, typename Visitor>
  void ForEachRow(absl::Span<const uint64_t> keys, absl::Span<const uint32_t> positions,
                  size_t touched_bytes, const CallerArray& caller_array, Absent absent,
                  Visitor visit) const REQUIRES(mutex_);
  // Creates the row of an absent key: with its initial values and state if `init`, else all zero.
  float* AddRow(uint64_t hash, bool init) REQUIRES(mutex_);

  const RowUpdater& updater_;
  const double phase_;
  mutable Mutex mutex_;
  RowIndex index_ GUARDED_BY(mutex_);
  RowArena arena_ GUARDED_BY(mutex_);
};

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_PS_TABLE_TABLE_SHARD_H_
