#include "embedding_ps/table/row_index.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

namespace satrap {
namespace {

constexpr double kMinHomeLines = 48;

// At kMaxLoad, consecutive taken entries rarely fill more lines than this. If they do, the number
// of overflow lines doubles.
constexpr size_t kMinOverflowLines = 16;

// A trade-off: a full line costs a lookup a second cache miss, but an empty entry costs 16 bytes.
constexpr double kMaxLoad = 0.79;

// A smaller factor leaves fewer entries empty but copies each entry more often: 9 times with 9/8, 7
// times with 7/6, 5 times with 5/4.
constexpr double kGrowth = 7.0 / 6;

}  // namespace

RowIndex::RowIndex(size_t reserve_rows, double phase, int num_partitions)
    : num_partitions_(static_cast<uint64_t>(std::max(num_partitions, 1))) {
  next_home_lines_ = kMinHomeLines * std::pow(kGrowth, phase);
  const double reserved_entries = static_cast<double>(reserve_rows) / kMaxLoad;
  const double home_lines = std::max(next_home_lines_, reserved_entries / kLineEntries + 2);
  Allocate(static_cast<size_t>(home_lines), kMinOverflowLines);
}

void RowIndex::Allocate(size_t home_lines, size_t overflow_lines) {
  home_lines_ = home_lines;
  overflow_lines_ = overflow_lines;
  num_entries_ = (home_lines_ + overflow_lines_) * kLineEntries;
  max_size_ = static_cast<size_t>(static_cast<double>(home_lines_ * kLineEntries) * kMaxLoad);
  // Rounded down, so that the home line of the largest ordinal is below home_lines_.
  lines_per_ordinal_ = home_lines_ * kNumPartitions / num_partitions_;
  block_ = PageBlock(num_entries_ * sizeof(Entry));
  entries_ = reinterpret_cast<Entry*>(block_.data());
  end_ = 0;
  size_ = 0;
}

void RowIndex::Insert(uint64_t ordinal, uint32_t row, uint8_t mark) {
  if (size_ >= max_size_) Grow();
  while (true) {
    // Entries are sorted by ordinal. Find the place. Then move all taken entries between this place
    // and the first empty entry up by one.
    Entry* place = entries_ + HomeLine(ordinal) * kLineEntries;
    while (place->inverse > ~ordinal) ++place;
    Entry* empty = place;
    while (empty->row_plus_one != 0) ++empty;
    // The last line must stay empty, because a search ends at an empty entry.
    if (empty + kLineEntries < entries_ + num_entries_) {
      std::memmove(static_cast<void*>(place + 1), place,
                   static_cast<size_t>(empty - place) * sizeof(Entry));
      *place = Entry();
      place->inverse = ~ordinal;
      place->row_plus_one = row + 1;
      place->mark_ = mark;
      end_ = std::max(end_, static_cast<size_t>(empty - entries_) + 1);
      ++size_;
      return;
    }
    Resize(home_lines_, 2 * overflow_lines_);
  }
}

void RowIndex::Expect(size_t rows) {
  if (rows <= max_size_) return;
  double home_lines = next_home_lines_;
  while (static_cast<double>(static_cast<size_t>(home_lines) * kLineEntries) * kMaxLoad <
         static_cast<double>(rows)) {
    home_lines *= kGrowth;
  }
  next_home_lines_ = home_lines;
  Resize(static_cast<size_t>(home_lines), overflow_lines_);
}

void RowIndex::Append(uint64_t ordinal, uint32_t row) {
  if (size_ >= max_size_) Grow();
  Entry entry = {};
  entry.inverse = ~ordinal;
  entry.row_plus_one = row + 1;
  while (!Place(entry)) Resize(home_lines_, 2 * overflow_lines_);
}

// Appends `entry`, whose ordinal is the largest so far. Returns false if there is no room.
bool RowIndex::Place(const Entry& entry) {
  const size_t at = std::max(end_, HomeLine(entry.ordinal()) * kLineEntries);
  if (at + kLineEntries >= num_entries_) return false;
  entries_[at] = entry;
  end_ = at + 1;
  ++size_;
  return true;
}

// Grows to the next capacity of this phase. If the index was reserved with a capacity between two
// of these, it grows to the larger of the two.
void RowIndex::Grow() {
  while (static_cast<size_t>(next_home_lines_) <= home_lines_) next_home_lines_ *= kGrowth;
  Resize(static_cast<size_t>(next_home_lines_), overflow_lines_);
}

void RowIndex::Resize(size_t home_lines, size_t overflow_lines) {
  for (;; overflow_lines *= 2) {
    RowIndex resized(0, 0, static_cast<int>(num_partitions_));
    resized.Allocate(home_lines, overflow_lines);
    if (CopyTo(&resized)) {
      resized.next_home_lines_ = next_home_lines_;
      *this = std::move(resized);
      return;
    }
  }
}

// Copies the marks, too, because a cut may be in progress while the index grows. Returns false if
// `to` has too few overflow lines.
bool RowIndex::CopyTo(RowIndex* to) const {
  for (const Entry* entry = entries_; entry != entries_ + end_; ++entry) {
    if (entry->row_plus_one != 0 && !to->Place(*entry)) return false;
  }
  return true;
}

void RowIndex::ClearMarks() {
  for (Entry* entry = entries_; entry != entries_ + end_; ++entry) entry->mark_ = 0;
}

}  // namespace satrap
