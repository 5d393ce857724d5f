// A TableShard is the part of an embedding table that one lock guards: an index and an arena.
// EmbeddingTable decides which keys belong to which shard.
//
// Every call takes the arrays of the whole request and the positions of this shard's keys in them.
// It takes the lock once, and fetches the index lines and rows of a block of keys together. A cut
// is read in short calls (shard_cut.h).
//
// Thread-safe.

#ifndef SATRAP_EMBEDDING_PS_TABLE_TABLE_SHARD_H_
#define SATRAP_EMBEDDING_PS_TABLE_TABLE_SHARD_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "common/thread/mutex.h"
#include "embedding_ps/table/key_order.h"
#include "embedding_ps/table/row_arena.h"
#include "embedding_ps/table/row_index.h"
#include "embedding_ps/table/row_updater.h"
#include "embedding_ps/table/shard_cut.h"

namespace satrap {

// What Lookup returns for a key without a row.
enum class AbsentRows {
  kInitialValues,  // training: the values that Update would create
  kZeros,          // evaluation
};

// The result of a ReadCut.
enum class CutRead {
  kMore,   // the partition may have more rows
  kEnded,  // all rows of the partition have been read
  kGone,   // the cut is incomplete or has ended; discard what was read
};

class TableShard {
 public:
  // The most rows that one ReadCut returns. With this limit ReadCut holds the lock for only some 20
  // us.
  static constexpr size_t kMaxCutRows = 512;

  // A row that is in the arena but not yet in the index.
  struct AppendedRow {
    uint64_t ordinal;
    uint32_t row;
  };

  // `updater` is not owned and must outlive the shard. `order` says which keys the shard may hold.
  // `phase`, in [0, 1), differs between the shards of a table: see RowIndex and RowArena.
  TableShard(const RowUpdater* updater, const KeyOrder& order, size_t reserve_rows, double phase);

  // These do what the methods of EmbeddingTable with these names do, but only for the keys at
  // `positions`.
  void Lookup(absl::Span<const uint64_t> keys, absl::Span<const uint32_t> positions,
              AbsentRows mode, float* values, uint8_t* presence) const EXCLUDES(mutex_);
  int64_t VisitRows(absl::Span<const uint64_t> keys, absl::Span<const uint32_t> positions,
                    const float* gradients, absl::Span<const uint32_t> sample_counts,
                    RowUpdater::Step* step) EXCLUDES(mutex_);
  // Visits with `step` the idle rows: those that VisitRows has not visited since the last call of
  // this function. REQUIRES: step->has_idle_rows()
  void VisitIdleRows(RowUpdater::Step* step) EXCLUDES(mutex_);
  int64_t CreateRows(absl::Span<const uint64_t> keys, absl::Span<const uint32_t> positions,
                     const RowUpdater::Step& step) EXCLUDES(mutex_);
  void ReadRows(absl::Span<const uint64_t> keys, absl::Span<const uint32_t> positions,
                float* rows) const EXCLUDES(mutex_);
  void WriteRows(absl::Span<const uint64_t> keys, absl::Span<const uint32_t> positions,
                 const float* rows) EXCLUDES(mutex_);

  // Appends the keys of the nth partition of the shard, ascending, to `keys`.
  void AppendKeys(int nth_partition, std::vector<uint64_t>* keys) EXCLUDES(mutex_);

  // These do what the methods of EmbeddingTable do, but only for this shard.
  void BeginCut(uint64_t cut, std::shared_ptr<CopyBudget> budget) EXCLUDES(mutex_);
  void EndCut(uint64_t cut) EXCLUDES(mutex_);
  // Reads the next rows of the nth partition of the shard, with their keys: at most kMaxCutRows and
  // at most `max_rows`. Writes the number of rows to *num_rows.
  CutRead ReadCut(uint64_t cut, int nth_partition, size_t max_rows, uint64_t* keys, float* rows,
                  size_t* num_rows) EXCLUDES(mutex_);

  // Copies rows into the arena, where no call finds them yet, and appends to *appended what
  // IndexRows needs.
  void AppendRows(absl::Span<const uint64_t> keys, const float* rows,
                  std::vector<AppendedRow>* appended) EXCLUDES(mutex_);
  // Makes the rows of `runs` visible to all calls. Returns false, with nothing changed, if the
  // ordinals of the runs, taken one after another, do not ascend. REQUIRES: the shard has no other
  // rows
  bool IndexRows(absl::Span<const absl::Span<const AppendedRow>> runs) EXCLUDES(mutex_);

  void Clear() EXCLUDES(mutex_);
  int64_t rows() const EXCLUDES(mutex_);
  int64_t bytes() const EXCLUDES(mutex_);

 private:
  // An array of the caller, [request keys, width], whose row i belongs to key i. It holds gradients
  // or rows, or will be filled with values or rows.
  struct CallerArray {
    const float* floats;
    size_t width;
  };
  // Calls visit(position, number, row) for each position in turn; row is null if the key is absent.
  // Before such a call, brings the first `touched_bytes` of the row, and the key's row of
  // `caller_array`, into the cache. If the key is absent, calls absent(ordinal) before that:
  // `absent` may create the row and return its number; otherwise it returns RowIndex::kAbsent.
  template <typename Absent, typename Visitor>
  void ForEachRow(absl::Span<const uint64_t> keys, absl::Span<const uint32_t> positions,
                  size_t touched_bytes, const CallerArray& caller_array, Absent absent,
                  Visitor visit) const REQUIRES(mutex_);
  // Creates the row of an absent key. It has its initial values and state if `init`, otherwise
  // zeros.
  uint32_t AddRow(uint64_t ordinal, bool init) REQUIRES(mutex_);
  // Notes that the step holds the row, so that the next VisitIdleRows skips it.
  void MarkSeen(uint32_t row) REQUIRES(mutex_);
  // Copies out those rows of the keys that the cut in progress still needs. REQUIRES: a cut is in
  // progress. Call this before the rows change.
  void CopyOut(absl::Span<const uint64_t> keys, absl::Span<const uint32_t> positions)
      REQUIRES(mutex_);
  // Like CopyOut, but for all rows of the shard.
  void CopyAllOut() REQUIRES(mutex_);

  const RowUpdater& updater_;
  const KeyOrder order_;
  const double phase_;
  mutable Mutex mutex_;
  RowIndex index_ GUARDED_BY(mutex_);
  RowArena arena_ GUARDED_BY(mutex_);
  // Bit i is 1 if MarkSeen has noted row number i; bits beyond the end count as 0. All bits are 0
  // when a step begins and after VisitIdleRows. Empty if no pass has idle rows.
  std::vector<uint64_t> seen_ GUARDED_BY(mutex_);
  std::unique_ptr<ShardCut> cut_ GUARDED_BY(mutex_);  // null if no cut is in progress
  // The mark of the newest cut. If an entry's mark is not 0, it is the mark of a cut that has not
  // been read completely and that began after the last time that last_mark_ was reset to 0.
  uint8_t last_mark_ GUARDED_BY(mutex_) = 0;
};

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_PS_TABLE_TABLE_SHARD_H_
