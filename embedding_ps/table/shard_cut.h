// A shard's state of a cut that is being written: how far the writer has come in each partition,
// and the rows that were copied out because they changed before the writer reached them.
//
// The cut must get each row as it was when the cut began. A row that the writer has not passed yet
// is copied out before it changes, and its mark (RowIndex::Entry::mark) is set to the mark of the
// cut. A row that is created in a place that the writer has not passed yet gets the same mark,
// because the row is not part of the cut. The writer takes rows without the cut's mark from the
// table, and rows with the mark from the copies (a marked row without a copy is not part of the
// cut). It sets the marks of the rows that it passes to 0. Rows that the writer has passed may
// change freely.
//
// Not thread-safe: the shard's lock guards it. But a CopyBudget is thread-safe.

#ifndef SATRAP_EMBEDDING_PS_TABLE_SHARD_CUT_H_
#define SATRAP_EMBEDDING_PS_TABLE_SHARD_CUT_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "embedding_ps/table/key_order.h"
#include "embedding_ps/table/row_arena.h"

namespace satrap {

// The memory that the copies of one cut may take, over all tables and shards.
class CopyBudget {
 public:
  explicit CopyBudget(int64_t limit_bytes) : left_bytes_(limit_bytes) {}

  // Takes `bytes` for the copies of `rows` rows. Returns false if fewer bytes are left. From then
  // on the budget is exhausted, and the cut is lost.
  bool Take(int64_t rows, int64_t bytes);
  void Return(int64_t bytes) { left_bytes_ += bytes; }
  bool exhausted() const { return exhausted_; }

  // The number of rows copied out so far.
  int64_t rows() const { return rows_; }
  int64_t bytes() const { return bytes_; }

 private:
  std::atomic<int64_t> left_bytes_;
  std::atomic<bool> exhausted_{false};
  std::atomic<int64_t> rows_{0};
  std::atomic<int64_t> bytes_{0};
};

class ShardCut {
 public:
  struct Copy {
    uint64_t ordinal;
    uint32_t place;  // of the copy
  };
  // The nth partition of the shard.
  struct Partition {
    uint64_t next = 0;  // low bits of the first ordinal that the writer has not passed; 2^52: ended
    uint32_t newest = RowArena::kMaxRows;  // place of the newest unsorted copy; kMaxRows: none
    std::vector<Copy> sorted;              // copies not yet written, the smallest ordinal last
  };

  ShardCut(uint64_t number, uint8_t mark, int num_partitions, size_t row_bytes, size_t stride_bytes,
           std::shared_ptr<CopyBudget> budget);

  uint64_t number() const { return number_; }
  uint8_t mark() const { return mark_; }
  const CopyBudget& budget() const { return *budget_; }

  bool IsPassed(uint64_t ordinal) const {
    return (ordinal & KeyOrder::kLowMask) < partitions_[ordinal >> KeyOrder::kLowBits].next;
  }
  // Makes room for `rows` copies. Returns false if the budget is exhausted.
  bool Reserve(size_t rows) {
    const int64_t n = static_cast<int64_t>(rows);
    return budget_->Take(n, n * place_bytes_);
  }
  // Copies `row`, which is about to change. REQUIRES: Reserve has made room for it
  void CopyOut(uint64_t ordinal, const float* row);

  // The nth partition, with all its copies sorted.
  Partition& Sorted(int nth);
  const float* RowOf(const Copy& copy) const { return copies_.Row(copy.place) + kHeadFloats; }
  // Frees the memory of a copy that the writer has taken.
  void Release(const Copy& copy);

  // Whether the writer has passed all rows.
  bool IsRead() const;

 private:
  // Each place of copies_ holds a Head, followed by the row. The heads link the copies of each
  // partition to a list, and the free places to another list. So the lists need no memory of their
  // own.
  struct Head {
    uint64_t ordinal;
    uint32_t next;  // place, or RowArena::kMaxRows
  };
  static constexpr size_t kHeadFloats = sizeof(Head) / sizeof(float);
  Head* HeadOf(uint32_t place) const { return reinterpret_cast<Head*>(copies_.Row(place)); }

  const uint64_t number_;
  const uint8_t mark_;
  const size_t row_bytes_;
  const int64_t place_bytes_;
  const std::shared_ptr<CopyBudget> budget_;
  std::vector<Partition> partitions_;
  RowArena copies_;
  uint32_t free_ = RowArena::kMaxRows;  // the first place that Release has freed
};

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_PS_TABLE_SHARD_CUT_H_
