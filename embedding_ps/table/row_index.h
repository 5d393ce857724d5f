// A RowIndex maps the keys of a shard, by their ordinals (key_order.h), to row numbers.
//
// It uses open addressing over an array of 16-byte entries, four to a cache line, in ascending
// order of ordinals and thus of keys. The home of a key is the cache line at the same relative
// position in the array as the ordinal has among all ordinals. An insert moves all entries between
// its place and the next empty entry up by one. Keys are distributed evenly over the homes, because
// every key is Mix64 of an id (docs/formats.md, "Hashes").
//
// The order does not depend on the capacity. So growing the index is one sequential pass over both
// arrays, and filling an index with ascending keys is one sequential pass, too. The index grows by
// a sixth: between two growths the cost per row falls from 23.6 to 20.3 bytes. Every u64 is a valid
// key: an empty entry is recognised by its row, not by its key.
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
  // These two constants are not row numbers: all row numbers are smaller.
  static constexpr uint32_t kAbsent = 0xffffffff;
  static constexpr uint32_t kFurther = 0xfffffffe;

  class Entry {
   public:
    uint64_t ordinal() const { return ~inverse; }
    uint32_t row() const { return row_plus_one - 1; }

    // The mark of the cut that has already copied the row, or does not need it (shard_cut.h). 0 if
    // there is no such cut.
    uint8_t mark() const { return mark_; }
    void set_mark(uint8_t mark) { mark_ = mark; }

   private:
    friend class RowIndex;
    uint64_t inverse;       // ~ordinal, so that an empty entry's 0 ranks after every ordinal
    uint32_t row_plus_one;  // 0: empty, as in memory fresh from the kernel
    uint8_t mark_;
    uint8_t reserved[3];  // for the row's data time, count and flags (eviction, admission); 0
  };
  static_assert(sizeof(Entry) == 16);

  // The index does not grow before it holds `reserve_rows`. `phase`, in [0, 1), shifts the sizes at
  // which it grows: phase 0 and a phase just below 1 are one growth apart. The shards of a table
  // hold about the same number of rows. If their phases are spread over [0, 1), they grow one after
  // another, and the table's bytes per row stay near the mean of the range above, 21.9. Ordinals
  // are below num_partitions * 2^52.
  explicit RowIndex(size_t reserve_rows = 0, double phase = 0, int num_partitions = kNumPartitions);

  size_t size() const { return size_; }
  size_t bytes() const { return block_.size(); }

  // The row of the key with `ordinal`, or kAbsent.
  uint32_t Find(uint64_t ordinal) const {
    uint32_t row;
    for (size_t line = HomeLine(ordinal); (row = FindInLine(line, ordinal)) == kFurther; ++line) {
    }
    return row;
  }
  // Like Find, but returns the entry, which includes the row's mark; null if absent. The entry is
  // valid until the next Insert or Append.
  Entry* FindEntry(uint64_t ordinal) {
    Entry* entry = entries_ + HomeLine(ordinal) * kLineEntries;
    while (entry->inverse > ~ordinal) ++entry;
    return entry->inverse == ~ordinal && entry->row_plus_one != 0 ? entry : nullptr;
  }

  // The steps of Find, for a caller that looks up many keys: while it searches some lines, it can
  // already fetch others from memory. Lines are valid until the next Insert.
  size_t HomeLine(uint64_t ordinal) const {
    return static_cast<size_t>((static_cast<unsigned __int128>(ordinal) * lines_per_ordinal_) >>
                               64);
  }
  const void* LineAddress(size_t line) const { return entries_ + line * kLineEntries; }
  // Returns what Find returns, or kFurther if the answer is in a later line. REQUIRES: `line` is
  // HomeLine(ordinal), or the line right after one for which this function returned kFurther
  uint32_t FindInLine(size_t line, uint64_t ordinal) const {
    // Lower ordinals come first and empty entries last. So the place where this ordinal must be
    // equals the number of lower ordinals.
    const Entry* const entries = entries_ + line * kLineEntries;
    const uint64_t inverse = ~ordinal;
    const size_t place =
        size_t{entries[0].inverse > inverse} + size_t{entries[1].inverse > inverse} +
        size_t{entries[2].inverse > inverse} + size_t{entries[3].inverse > inverse};
    if (place == kLineEntries) return kFurther;
    // An empty entry has row_plus_one 0, so subtracting 1 gives kAbsent.
    return entries[place].inverse == inverse ? entries[place].row_plus_one - 1 : kAbsent;
  }

  // REQUIRES: Find(ordinal) == kAbsent, row < kFurther
  void Insert(uint64_t ordinal, uint32_t row, uint8_t mark = 0);

  // Makes room for `rows` rows in total: grows to the capacity that this many inserts would give.
  void Expect(size_t rows);
  // Like Insert, but only for the largest ordinal so far, so it writes one entry without a search.
  // REQUIRES: `ordinal` is above all ordinals in the index
  void Append(uint64_t ordinal, uint32_t row);

  // Calls visit(entry) for the keys with ordinals in [first, last], ascending, until it returns
  // false.
  template <typename Visitor>
  void Walk(uint64_t first, uint64_t last, Visitor visit) {
    // All keys of the range lie before the first empty entry that is at or after the home of
    // `last`.
    const Entry* const last_home = entries_ + HomeLine(last) * kLineEntries;
    for (Entry* entry = entries_ + HomeLine(first) * kLineEntries; entry != entries_ + num_entries_;
         ++entry) {
      if (entry->row_plus_one == 0) {
        if (entry >= last_home) return;
      } else if (entry->ordinal() >= first) {
        if (entry->ordinal() > last || !visit(*entry)) return;
      }
    }
  }

  // Sets the mark of every entry to 0.
  void ClearMarks();

 private:
  static constexpr size_t kLineEntries = 4;

  void Allocate(size_t home_lines, size_t overflow_lines);
  void Grow();
  void Resize(size_t home_lines, size_t overflow_lines);
  bool CopyTo(RowIndex* to) const;
  bool Place(const Entry& entry);

  PageBlock block_;
  Entry* entries_ = nullptr;
  uint64_t lines_per_ordinal_ = 0;  // multiplied by 2^64
  double next_home_lines_ = 0;      // a capacity of this phase; not rounded, to keep phases apart
  size_t home_lines_ = 0;           // the number of lines that can be a home
  size_t overflow_lines_ = 0;  // room after them for displaced entries; the last line stays empty
  size_t num_entries_ = 0;
  size_t end_ = 0;       // the entry after the last taken one
  size_t max_size_ = 0;  // an insert beyond this size grows the index first
  size_t size_ = 0;
  uint64_t num_partitions_ = kNumPartitions;
};

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_PS_TABLE_ROW_INDEX_H_
