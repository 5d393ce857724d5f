// A RowIndex maps the keys of a shard to row numbers.
//
// Open addressing over an array of 16-byte slots, four to a cache line, in ascending order of the
// keys' hashes. A key's home is the cache line that its hash, as a fraction of 2^64, points at; a
// taken slot pushes the later ones up. The order does not depend on the capacity, so growing is one
// sequential pass over both arrays. The index grows by a sixth: between two growths a row costs
// 23.6 down to 20.3 bytes. Every u64 is a legal key: a slot is empty by its row, not by its key.
//
// Not thread-safe: the shard's lock guards it.

#ifndef SATRAP_EMBEDDING_PS_TABLE_ROW_INDEX_H_
#define SATRAP_EMBEDDING_PS_TABLE_ROW_INDEX_H_

#include <cstddef>
#include <cstdint>

#include "common/numeric/hash.h"
#include "embedding_ps/table/page_block.h"

namespace satrap {

class RowIndex {
 public:
  // Neither is a row number: those are below both.
  static constexpr uint32_t kAbsent = 0xffffffff;
  static constexpr uint32_t kFurther = 0xfffffffe;

  // Does not grow before it holds `reserve_rows`. `phase`, in [0, 1), moves the sizes at which it
  // grows: 0 and almost 1 lie one growth apart. The shards of a table hold about as many rows each;
  // with phases spread over [0, 1) they grow one after another, and the table's bytes a row stay
  // near the mean of the range above, 21.9.
  explicit RowIndex(size_t reserve_rows = 0, double phase = 0);

  // A bijection: two keys never have the same hash, so the slot keeps the hash in place of the key.
  static uint64_t HashOf(uint64_t key) { return Mix64(key + kSalt); }
  static uint64_t KeyOf(uint64_t hash);

  size_t size() const { return size_; }
  size_t bytes() const { return block_.size(); }

  // The row of the key with `hash`, or kAbsent.
  uint32_t Find(uint64_t hash) const {
    uint32_t row;
    for (size_t line = HomeLine(hash); (row = FindInLine(line, hash)) == kFurther; ++line) {
    }
    return row;
  }

  // Find in steps, for a caller that looks for many keys and has memory fetch some lines while it
  // searches others. Lines are good until the next Insert.
  size_t HomeLine(uint64_t hash) const {
    return static_cast<size_t>((static_cast<unsigned __int128>(hash) * home_lines_) >> 64);
  }
  const void* LineAddress(size_t line) const { return slots_ + line * kLineSlots; }
  // As Find, or kFurther if the answer lies in a later line.
  // REQUIRES: line is HomeLine(hash), or the line behind one that gave kFurther
  uint32_t FindInLine(size_t line, uint64_t hash) const {
    // Slots of lower hashes come first and empty slots last, so the number of lower hashes is the
    // place where this hash must be.
    const Slot* const slots = slots_ + line * kLineSlots;
    const uint64_t inverse = ~hash;
    const size_t place = size_t{slots[0].inverse > inverse} + size_t{slots[1].inverse > inverse} +
                         size_t{slots[2].inverse > inverse} + size_t{slots[3].inverse > inverse};
    if (place == kLineSlots) return kFurther;
    // An empty slot has row_plus_one 0, which gives kAbsent.
    return slots[place].inverse == inverse ? slots[place].row_plus_one - 1 : kAbsent;
  }

  // REQUIRES: Find(hash) == kAbsent, row < kFurther
  void Insert(uint64_t hash, uint32_t row);

  // Calls visit(key, row) for every key, in an order that depends on the keys only.
  template <typename Visitor>
  void ForEach(Visitor visit) const {
    for (const Slot* slot = slots_; slot != slots_ + num_slots_; ++slot) {
      if (slot->row_plus_one != 0) visit(KeyOf(~slot->inverse), slot->row_plus_one - 1);
    }
  }

 private:
  struct Slot {
    uint64_t inverse;       // ~hash, so that an empty slot's 0 ranks behind every hash
    uint32_t row_plus_one;  // 0: empty, as in memory fresh from the kernel
    uint32_t reserved;      // for the row's data time, count and flags (eviction, admission); 0
  };
  static_assert(sizeof(Slot) == 16);
  static constexpr size_t kLineSlots = 4;
  // Makes the keys of one id space, which are Mix64 of ids, not hash to their neighbours.
  static constexpr uint64_t kSalt = 0x9e3779b97f4a7c15ULL;

  void Allocate(size_t home_lines, size_t overflow_lines);
  void Grow();
  void Resize(size_t home_lines, size_t overflow_lines);
  bool CopyTo(RowIndex* to) const;

  PageBlock block_;
  Slot* slots_ = nullptr;
  double next_home_lines_ = 0;  // a capacity of this phase; not rounded, to keep phases apart
  size_t home_lines_ = 0;       // lines that can be a home
  size_t overflow_lines_ = 0;   // room behind them for displaced slots; the last line stays empty
  size_t num_slots_ = 0;
  size_t max_size_ = 0;  // an insert beyond it grows the index first
  size_t size_ = 0;
};

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_PS_TABLE_ROW_INDEX_H_
