// The part of TableShard that reads cuts and loads rows.

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "embedding_ps/table/row_lines.h"
#include "embedding_ps/table/table_shard.h"

namespace satrap {

void TableShard::BeginCut(uint64_t cut, std::shared_ptr<CopyBudget> budget) {
  std::unique_ptr<ShardCut> before;  // an unfinished one, freed without the lock
  MutexLock lock(&mutex_);
  // Cuts that ended before they were read completely leave marks in entries. Only the mark of the
  // newest cut counts, so old marks do no harm until the mark numbers start again.
  if (last_mark_ == std::numeric_limits<uint8_t>::max()) {
    index_.ClearMarks();
    last_mark_ = 0;
  }
  ++last_mark_;
  before = std::move(cut_);
  cut_ = std::make_unique<ShardCut>(cut, last_mark_, order_.num_partitions(),
                                    updater_.layout().num_floats() * sizeof(float),
                                    updater_.layout().stride_bytes(), std::move(budget));
}

void TableShard::EndCut(uint64_t cut) {
  std::unique_ptr<ShardCut> ended;  // frees its copies without the lock
  MutexLock lock(&mutex_);
  if (cut_ == nullptr || cut_->number() != cut) return;
  // The writer has visited every entry and has set every mark to 0, including those of older cuts.
  if (cut_->IsRead()) last_mark_ = 0;
  ended = std::move(cut_);
}

void TableShard::CopyOut(absl::Span<const uint64_t> keys, absl::Span<const uint32_t> positions) {
  uint64_t ordinals[kBlock];
  RowIndex::Entry* entries[kBlock];
  const size_t row_bytes = updater_.layout().num_floats() * sizeof(float);
  for (; !positions.empty(); positions.remove_prefix(std::min(kBlock, positions.size()))) {
    if (cut_->budget().exhausted()) return;
    const size_t n = std::min(kBlock, positions.size());
    for (size_t i = 0; i < n; ++i) {
      ordinals[i] = order_.OrdinalOf(keys[positions[i]]);
      Touch(index_.LineAddress(index_.HomeLine(ordinals[i])));
    }
    size_t num_entries = 0;
    for (size_t i = 0; i < n; ++i) {
      if (cut_->IsPassed(ordinals[i])) continue;
      RowIndex::Entry* const entry = index_.FindEntry(ordinals[i]);
      if (entry != nullptr && entry->mark() != cut_->mark()) entries[num_entries++] = entry;
    }
    if (num_entries == 0) continue;
    if (!cut_->Reserve(num_entries)) return;
    for (size_t i = 0; i < num_entries; ++i) {
      ForEachLine(arena_.Row(entries[i]->row()), row_bytes, Touch);
    }
    for (size_t i = 0; i < num_entries; ++i) {
      // If a key occurs twice, its row has already been copied.
      if (entries[i]->mark() == cut_->mark()) continue;
      cut_->CopyOut(entries[i]->ordinal(), arena_.Row(entries[i]->row()));
      entries[i]->set_mark(cut_->mark());
    }
  }
}

void TableShard::CopyAllOut() {
  for (int nth = 0; nth < order_.num_partitions(); ++nth) {
    if (cut_->budget().exhausted()) return;
    const uint64_t base = static_cast<uint64_t>(nth) << KeyOrder::kLowBits;
    // Thread-safety analysis cannot see that the lambda runs with the lock held.
    index_.Walk(base, base | KeyOrder::kLowMask,
                [&](RowIndex::Entry& entry) NO_THREAD_SAFETY_ANALYSIS {
                  if (cut_->IsPassed(entry.ordinal()) || entry.mark() == cut_->mark()) return true;
                  if (!cut_->Reserve(1)) return false;
                  cut_->CopyOut(entry.ordinal(), arena_.Row(entry.row()));
                  entry.set_mark(cut_->mark());
                  return true;
                });
  }
}

CutRead TableShard::ReadCut(uint64_t cut, int nth_partition, size_t max_rows, uint64_t* keys,
                            float* rows, size_t* num_rows) {
  const size_t num_floats = updater_.layout().num_floats();
  const uint64_t base = static_cast<uint64_t>(nth_partition) << KeyOrder::kLowBits;
  max_rows = std::min(max_rows, kMaxCutRows);
  *num_rows = 0;
  MutexLock lock(&mutex_);
  if (cut_ == nullptr || cut_->number() != cut || cut_->budget().exhausted()) return CutRead::kGone;
  ShardCut& reading = *cut_;
  ShardCut::Partition& partition = reading.Sorted(nth_partition);
  if (partition.next > KeyOrder::kLowMask) return CutRead::kEnded;
  const float* sources[kMaxCutRows];
  size_t n = 0;
  size_t copies_left = partition.sorted.size();
  const auto take_copy = [&] {
    const ShardCut::Copy& copy = partition.sorted[--copies_left];
    keys[n] = order_.KeyOf(copy.ordinal);
    sources[n++] = reading.RowOf(copy);
  };
  // Merges two ascending sequences, the index and the copies. Thread-safety analysis cannot see
  // that the lambda runs with the lock held.
  bool full = false;
  index_.Walk(base | partition.next, base | KeyOrder::kLowMask,
              [&](RowIndex::Entry& entry) NO_THREAD_SAFETY_ANALYSIS {
                const uint64_t ordinal = entry.ordinal();
                while (copies_left > 0 && partition.sorted[copies_left - 1].ordinal <= ordinal) {
                  if ((full = n == max_rows)) return false;
                  take_copy();
                }
                if (entry.mark() != reading.mark()) {
                  if ((full = n == max_rows)) return false;
                  keys[n] = order_.KeyOf(ordinal);
                  sources[n++] = arena_.Row(entry.row());
                }
                if (entry.mark() != 0) entry.set_mark(0);
                partition.next = (ordinal & KeyOrder::kLowMask) + 1;
                return true;
              });
  // Takes the copies of rows that come after the last entry of the index.
  while (copies_left > 0 && !full) {
    full = n == max_rows;
    if (!full) take_copy();
  }
  if (!full) partition.next = KeyOrder::kLowMask + 1;
  for (size_t from = 0; from < n; from += kBlock) {
    const size_t to = std::min(n, from + kBlock);
    for (size_t i = from; i < to; ++i) ForEachLine(sources[i], num_floats * sizeof(float), Touch);
    for (size_t i = from; i < to; ++i) {
      std::memcpy(rows + i * num_floats, sources[i], num_floats * sizeof(float));
    }
  }
  while (partition.sorted.size() > copies_left) {
    reading.Release(partition.sorted.back());
    partition.sorted.pop_back();
  }
  *num_rows = n;
  return full ? CutRead::kMore : CutRead::kEnded;
}

void TableShard::AppendRows(absl::Span<const uint64_t> keys, const float* rows,
                            std::vector<AppendedRow>* appended) {
  const size_t num_floats = updater_.layout().num_floats();
  const size_t stride_floats = updater_.layout().stride_bytes() / sizeof(float);
  uint32_t first = 0;
  for (size_t done = 0; done < keys.size();) {
    float* to;
    size_t n;
    {
      // Only the search for a place needs the lock, because no other thread uses the memory of
      // these rows yet.
      MutexLock lock(&mutex_);
      if (done == 0) first = arena_.AddRange(static_cast<uint32_t>(keys.size()));
      const uint32_t row = first + static_cast<uint32_t>(done);
      to = arena_.Row(row);
      n = std::min<size_t>(keys.size() - done, arena_.RowsInChunk(row));
    }
    const float* const from = rows + done * num_floats;
    if (stride_floats == num_floats) {
      std::memcpy(to, from, n * num_floats * sizeof(float));
    } else {
      for (size_t i = 0; i < n; ++i) {
        std::memcpy(to + i * stride_floats, from + i * num_floats, num_floats * sizeof(float));
      }
    }
    done += n;
  }
  const size_t before = appended->size();
  // resize doubles the capacity, as push_back does. This matters because loading a file calls this
  // function thousands of times.
  appended->resize(before + keys.size());
  AppendedRow* next = appended->data() + before;
  for (const uint64_t key : keys) *next++ = {order_.OrdinalOf(key), first++};
}

bool TableShard::IndexRows(absl::Span<const absl::Span<const AppendedRow>> runs) {
  size_t num_rows = 0;
  bool any = false;
  uint64_t before = 0;
  for (const absl::Span<const AppendedRow> run : runs) {
    num_rows += run.size();
    for (const AppendedRow& row : run) {
      if (any && row.ordinal <= before) return false;
      any = true;
      before = row.ordinal;
    }
  }
  MutexLock lock(&mutex_);
  index_.Expect(num_rows);
  for (const absl::Span<const AppendedRow> run : runs) {
    for (const AppendedRow& row : run) index_.Append(row.ordinal, row.row);
  }
  return true;
}

}  // namespace satrap
