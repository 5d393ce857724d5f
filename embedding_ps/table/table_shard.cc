#include "embedding_ps/table/table_shard.h"

#include <algorithm>
#include <cstring>

#include "common/base/check.h"
#include "embedding_ps/table/row_lines.h"

namespace satrap {

TableShard::TableShard(const RowUpdater* updater, const KeyOrder& order, size_t reserve_rows,
                       double phase)
    : updater_(*updater),
      order_(order),
      phase_(phase),
      index_(reserve_rows, phase, order.num_partitions()),
      arena_(updater->layout().stride_bytes(), phase) {}

template <typename Absent, typename Visitor>
void TableShard::ForEachRow(absl::Span<const uint64_t> keys, absl::Span<const uint32_t> positions,
                            size_t touched_bytes, const CallerArray& caller_array, Absent absent,
                            Visitor visit) const {
  uint64_t ordinals[kBlock];
  size_t lines[kBlock];
  uint32_t found[kBlock];
  float* rows[kBlock];
  uint8_t further[kBlock];
  for (; !positions.empty(); positions.remove_prefix(std::min(kBlock, positions.size()))) {
    const size_t n = std::min(kBlock, positions.size());
    const uint32_t* const at = positions.data();
    // First the index: fetch the home line of each key, then search it. If that line is full of
    // smaller ordinals, the key is in a later line. The next lines of all such keys are fetched
    // together.
    for (size_t i = 0; i < n; ++i) {
      ordinals[i] = order_.OrdinalOf(keys[at[i]]);
      lines[i] = index_.HomeLine(ordinals[i]);
    }
    for (size_t i = 0; i < n; ++i) Touch(index_.LineAddress(lines[i]));
    size_t num_further = 0;
    for (size_t i = 0; i < n; ++i) {
      found[i] = index_.FindInLine(lines[i], ordinals[i]);
      further[num_further] = static_cast<uint8_t>(i);
      num_further += found[i] == RowIndex::kFurther;
    }
    for (size_t f = 0; f < num_further; ++f) Touch(index_.LineAddress(++lines[further[f]]));
    for (size_t f = 0; f < num_further; ++f) {
      const size_t i = further[f];
      while ((found[i] = index_.FindInLine(lines[i], ordinals[i])) == RowIndex::kFurther)
        ++lines[i];
    }
    // Then the rows: fetch them, and prefetch the caller's array, which is accessed mostly in
    // order.
    for (size_t i = 0; i < n; ++i) {
      if (found[i] == RowIndex::kAbsent) found[i] = absent(ordinals[i]);
      rows[i] = found[i] == RowIndex::kAbsent ? nullptr : arena_.Row(found[i]);
    }
    for (size_t i = 0; i < n; ++i) {
      if (rows[i] != nullptr) ForEachLine(rows[i], touched_bytes, Touch);
    }
    for (size_t i = 0; i < n; ++i) {
      ForEachLine(caller_array.floats + at[i] * caller_array.width,
                  caller_array.width * sizeof(float),
                  [](const void* address) { __builtin_prefetch(address); });
    }
    for (size_t i = 0; i < n; ++i) visit(at[i], found[i], rows[i]);
  }
}

uint32_t TableShard::AddRow(uint64_t ordinal, bool init) {
  // If the key occurs twice in the block, its row may have been created since ForEachRow searched
  // for it. Keys should be unique, but a second row for a key would corrupt the table.
  uint32_t row = index_.Find(ordinal);
  if (row != RowIndex::kAbsent) return row;
  row = arena_.Add();
  // The row is newer than the cut in progress, so the cut's writer must not take it.
  const uint8_t mark = cut_ != nullptr && !cut_->IsPassed(ordinal) ? cut_->mark() : 0;
  index_.Insert(ordinal, row, mark);
  if (init) updater_.InitRow(order_.KeyOf(ordinal), arena_.Row(row));
  return row;
}

void TableShard::MarkSeen(uint32_t row) {
  if (row / 64 >= seen_.size()) seen_.resize(arena_.end_row() / 64 + 1);
  seen_[row / 64] |= uint64_t{1} << (row % 64);
}

void TableShard::Lookup(absl::Span<const uint64_t> keys, absl::Span<const uint32_t> positions,
                        AbsentRows mode, float* values, uint8_t* presence) const {
  const size_t num_values = updater_.layout().num_values();
  MutexLock lock(&mutex_);
  ForEachRow(
      keys, positions, num_values * sizeof(float), {values, num_values},
      [](uint64_t) { return RowIndex::kAbsent; },
      [&](uint32_t position, uint32_t, const float* row) {
        float* const out = values + position * num_values;
        if (row != nullptr) {
          std::memcpy(out, row, num_values * sizeof(float));
          presence[position / 8] |= static_cast<uint8_t>(1 << (position % 8));
        } else if (mode == AbsentRows::kInitialValues) {
          updater_.InitValues(keys[position], out);
        } else {
          std::memset(out, 0, num_values * sizeof(float));
        }
      });
}

// Thread-safety analysis cannot see that the lambdas below run with the lock held.
int64_t TableShard::VisitRows(absl::Span<const uint64_t> keys, absl::Span<const uint32_t> positions,
                              const float* gradients, absl::Span<const uint32_t> sample_counts,
                              RowUpdater::Step* step) {
  const size_t num_values = updater_.layout().num_values();
  const bool changes_rows = step->changes_rows();
  const bool has_idle_rows = step->has_idle_rows();
  MutexLock lock(&mutex_);
  if (cut_ != nullptr && changes_rows) CopyOut(keys, positions);
  const uint32_t rows_before = arena_.num_rows();
  ForEachRow(
      keys, positions, updater_.layout().num_floats() * sizeof(float), {gradients, num_values},
      [&](uint64_t ordinal) NO_THREAD_SAFETY_ANALYSIS {
        if (!changes_rows) return RowIndex::kAbsent;
        const uint32_t row = AddRow(ordinal, /*init=*/true);
        step->AgeNewRow(arena_.Row(row));
        return row;
      },
      [&](uint32_t position, uint32_t number, float* row) NO_THREAD_SAFETY_ANALYSIS {
        if (has_idle_rows && row != nullptr) MarkSeen(number);
        absl::optional<uint32_t> sample_count;
        if (!sample_counts.empty()) sample_count = sample_counts[position];
        step->VisitRow(keys[position], gradients + position * num_values, sample_count, row);
      });
  return arena_.num_rows() - rows_before;
}

void TableShard::VisitIdleRows(RowUpdater::Step* step) {
  const size_t stride_floats = updater_.layout().stride_bytes() / sizeof(float);
  MutexLock lock(&mutex_);
  if (cut_ != nullptr && step->changes_rows()) CopyAllOut();
  // Visits rows in the order of their numbers, so that memory is read from beginning to end.
  const uint32_t end = arena_.end_row();
  seen_.resize(end / 64 + 1);
  const auto seen = [this](uint32_t row)
                        NO_THREAD_SAFETY_ANALYSIS { return seen_[row / 64] >> (row % 64) & 1; };
  for (uint32_t row = arena_.first_row(); row < end;) {
    if (seen(row)) {
      ++row;
      continue;
    }
    const uint32_t chunk_end = row + std::min(end - row, arena_.RowsInChunk(row));
    const uint32_t first = row;
    while (row < chunk_end && !seen(row)) ++row;
    step->VisitIdleRows(arena_.Row(first), stride_floats, row - first);
  }
  std::fill(seen_.begin(), seen_.end(), uint64_t{0});
}

int64_t TableShard::CreateRows(absl::Span<const uint64_t> keys,
                               absl::Span<const uint32_t> positions, const RowUpdater::Step& step) {
  MutexLock lock(&mutex_);
  const uint32_t rows_before = arena_.num_rows();
  ForEachRow(
      keys, positions, updater_.layout().num_floats() * sizeof(float), {nullptr, 0},
      [&](uint64_t ordinal) NO_THREAD_SAFETY_ANALYSIS {
        const uint32_t row = AddRow(ordinal, /*init=*/true);
        step.AgeNewRow(arena_.Row(row));
        return row;
      },
      [](uint32_t, uint32_t, float*) {});
  return arena_.num_rows() - rows_before;
}

void TableShard::ReadRows(absl::Span<const uint64_t> keys, absl::Span<const uint32_t> positions,
                          float* rows) const {
  const size_t num_floats = updater_.layout().num_floats();
  MutexLock lock(&mutex_);
  ForEachRow(
      keys, positions, num_floats * sizeof(float), {rows, num_floats},
      [](uint64_t) { return RowIndex::kAbsent; },
      [&](uint32_t position, uint32_t, const float* row) {
        CHECK(row != nullptr) << "no row of key " << keys[position];
        std::memcpy(rows + position * num_floats, row, num_floats * sizeof(float));
      });
}

void TableShard::WriteRows(absl::Span<const uint64_t> keys, absl::Span<const uint32_t> positions,
                           const float* rows) {
  const size_t num_floats = updater_.layout().num_floats();
  MutexLock lock(&mutex_);
  if (cut_ != nullptr) CopyOut(keys, positions);
  ForEachRow(
      keys, positions, num_floats * sizeof(float), {rows, num_floats},
      [&](uint64_t ordinal) NO_THREAD_SAFETY_ANALYSIS { return AddRow(ordinal, /*init=*/false); },
      [&](uint32_t position, uint32_t, float* row) {
        std::memcpy(row, rows + position * num_floats, num_floats * sizeof(float));
      });
}

void TableShard::AppendKeys(int nth_partition, std::vector<uint64_t>* keys) {
  const uint64_t first = static_cast<uint64_t>(nth_partition) << KeyOrder::kLowBits;
  MutexLock lock(&mutex_);
  index_.Walk(first, first | KeyOrder::kLowMask, [&](const RowIndex::Entry& entry) {
    keys->push_back(order_.KeyOf(entry.ordinal()));
    return true;
  });
}

void TableShard::Clear() {
  MutexLock lock(&mutex_);
  index_ = RowIndex(/*reserve_rows=*/0, phase_, order_.num_partitions());
  arena_.Clear();
  seen_.clear();
  cut_.reset();
  last_mark_ = 0;
}

int64_t TableShard::rows() const {
  MutexLock lock(&mutex_);
  return arena_.num_rows();
}

int64_t TableShard::bytes() const {
  MutexLock lock(&mutex_);
  return static_cast<int64_t>(index_.bytes() + arena_.bytes());
}

}  // namespace satrap
