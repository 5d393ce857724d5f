#include "embedding_ps/table/row_index.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

namespace satrap {
namespace {

constexpr double kMinHomeLines = 48;

// At kMaxLoad a run of taken slots is rarely longer than this; the overflow doubles when one is.
constexpr size_t kMinOverflowLines = 16;

// A full line costs a lookup a second cache miss; an empty slot costs 16 bytes.
constexpr double kMaxLoad = 0.79;

// A smaller factor leaves fewer slots empty but copies each slot more often: 9 times at 9/8, 7
// times at 7/6, 5 times at 5/4.
constexpr double kGrowth = 7.0 / 6;

}  // namespace

RowIndex::RowIndex(size_t reserve_rows, double phase) {
  next_home_lines_ = kMinHomeLines * std::pow(kGrowth, phase);
  const double reserved_slots = static_cast<double>(reserve_rows) / kMaxLoad;
  const double home_lines = std::max(next_home_lines_, reserved_slots / kLineSlots + 2);
  Allocate(static_cast<size_t>(home_lines), kMinOverflowLines);
}

// Undoes the steps of Mix64, the last one first.
uint64_t RowIndex::KeyOf(uint64_t hash) {
  uint64_t x = hash;
  x ^= (x >> 31) ^ (x >> 62);
  x *= 0x319642b2d24d8ec3ULL;  // inverse of 0x94d049bb133111eb
  x ^= (x >> 27) ^ (x >> 54);
  x *= 0x96de1b173f119089ULL;  // inverse of 0xbf58476d1ce4e5b9
  x ^= (x >> 30) ^ (x >> 60);
  return x - kSalt;
}

void RowIndex::Allocate(size_t home_lines, size_t overflow_lines) {
  home_lines_ = home_lines;
  overflow_lines_ = overflow_lines;
  num_slots_ = (home_lines_ + overflow_lines_) * kLineSlots;
  max_size_ = static_cast<size_t>(static_cast<double>(home_lines_ * kLineSlots) * kMaxLoad);
  block_ = PageBlock(num_slots_ * sizeof(Slot));
  slots_ = reinterpret_cast<Slot*>(block_.data());
  size_ = 0;
}

void RowIndex::Insert(uint64_t hash, uint32_t row) {
  if (size_ >= max_size_) Grow();
  while (true) {
    // Slots are sorted by hash: find the place, then move the run of taken slots behind it up by
    // one, into the first empty slot.
    Slot* place = slots_ + HomeLine(hash) * kLineSlots;
    while (place->inverse > ~hash) ++place;
    Slot* empty = place;
    while (empty->row_plus_one != 0) ++empty;
    // The last line must stay empty, because searches stop at an empty slot.
    if (empty + kLineSlots < slots_ + num_slots_) {
      std::memmove(place + 1, place, static_cast<size_t>(empty - place) * sizeof(Slot));
      *place = Slot{~hash, row + 1, 0};
      ++size_;
      return;
    }
    Resize(home_lines_, 2 * overflow_lines_);
  }
}

// To the next capacity of the phase, also from a reserved one in between.
void RowIndex::Grow() {
  while (static_cast<size_t>(next_home_lines_) <= home_lines_) next_home_lines_ *= kGrowth;
  Resize(static_cast<size_t>(next_home_lines_), overflow_lines_);
}

void RowIndex::Resize(size_t home_lines, size_t overflow_lines) {
  for (;; overflow_lines *= 2) {
    RowIndex resized;
    resized.Allocate(home_lines, overflow_lines);
    if (CopyTo(&resized)) {
      resized.next_home_lines_ = next_home_lines_;
      *this = std::move(resized);
      return;
    }
  }
}

// False if `to` has too few overflow lines.
bool RowIndex::CopyTo(RowIndex* to) const {
  const Slot* const end = to->slots_ + to->num_slots_ - kLineSlots;
  Slot* next = to->slots_;  // the first slot that may still be empty
  for (const Slot* slot = slots_; slot != slots_ + num_slots_; ++slot) {
    if (slot->row_plus_one == 0) continue;
    next = std::max(next, to->slots_ + to->HomeLine(~slot->inverse) * kLineSlots);
    if (next == end) return false;
    *next++ = *slot;
  }
  to->size_ = size_;
  return true;
}

}  // namespace satrap
