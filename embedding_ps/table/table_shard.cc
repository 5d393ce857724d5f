#include "embedding_ps/table/table_shard.h"

#include <algorithm>
#include <cstring>

#include "common/check.h"
#include "common/hash.h"

namespace satrap {
namespace {

// Keys go through the stages of a lookup in blocks, each stage a short loop of its own. The first
// touch of a cache line is a load: a prefetch that misses the TLB while others do is dropped. Loads
// do not retire before their data is there, so the fewer instructions lie between them, the more
// are under way at once.
constexpr size_t kBlock = 128;
constexpr size_t kCacheLineBytes = 64;

void Touch(const void* address) { (void)*static_cast<const volatile uint8_t*>(address); }

// Calls visit(address) for an address in each cache line of `size` bytes.
template <typename Visitor>
void ForEachLine(const float* floats, size_t size, Visitor visit) {
  const auto* const bytes = reinterpret_cast<const uint8_t*>(floats);
  visit(bytes);
  const size_t in_first_line =
      kCacheLineBytes - reinterpret_cast<uintptr_t>(bytes) % kCacheLineBytes;
  for (size_t at = in_first_line; at < size; at += kCacheLineBytes) visit(bytes + at);
}

}  // namespace

TableShard::TableShard(const RowRule* rule, size_t reserve_rows, double phase)
    : rule_(*rule),
      phase_(phase),
      index_(reserve_rows, phase),
      arena_(rule->layout().stride_bytes(), phase) {}

template <typename Absent, typename Visitor>
void TableShard::ForEachRow(absl::Span<const uint64_t> keys, absl::Span<const uint32_t> positions,
                            size_t touched_bytes, const Companion& companion, Absent absent,
                            Visitor visit) const {
  uint64_t hashes[kBlock];
  size_t lines[kBlock];
  uint32_t found[kBlock];
  float* rows[kBlock];
  uint8_t further[kBlock];
  for (; !positions.empty(); positions.remove_prefix(std::min(kBlock, positions.size()))) {
    const size_t n = std::min(kBlock, positions.size());
    const uint32_t* const at = positions.data();
    for (size_t i = 0; i < n; ++i) {
      hashes[i] = RowIndex::HashOf(keys[at[i]]);
      lines[i] = index_.HomeLine(hashes[i]);
    }
    for (size_t i = 0; i < n; ++i) Touch(index_.LineAddress(lines[i]));
    size_t num_further = 0;
    for (size_t i = 0; i < n; ++i) {
      found[i] = index_.FindInLine(lines[i], hashes[i]);
      further[num_further] = static_cast<uint8_t>(i);
      num_further += found[i] == RowIndex::kFurther;
    }
    for (size_t f = 0; f < num_further; ++f) Touch(index_.LineAddress(++lines[further[f]]));
    for (size_t f = 0; f < num_further; ++f) {
      const size_t i = further[f];
      while ((found[i] = index_.FindInLine(lines[i], hashes[i])) == RowIndex::kFurther) ++lines[i];
    }
    for (size_t i = 0; i < n; ++i) {
      rows[i] = found[i] == RowIndex::kAbsent ? absent(hashes[i]) : arena_.Row(found[i]);
    }
    for (size_t i = 0; i < n; ++i) {
      if (rows[i] != nullptr) ForEachLine(rows[i], touched_bytes, Touch);
    }
    for (size_t i = 0; i < n; ++i) {
      ForEachLine(companion.floats + at[i] * companion.width, companion.width * sizeof(float),
                  [](const void* address) { __builtin_prefetch(address); });
    }
    for (size_t i = 0; i < n; ++i) visit(at[i], rows[i]);
  }
}

float* TableShard::AddRow(uint64_t hash, bool init) {
  // A caller that breaks its promise of unique keys gets one row for them, not two.
  uint32_t row = index_.Find(hash);
  if (row != RowIndex::kAbsent) return arena_.Row(row);
  row = arena_.Add();
  index_.Insert(hash, row);
  if (init) rule_.InitRow(RowIndex::KeyOf(hash), arena_.Row(row));
  return arena_.Row(row);
}

void TableShard::Lookup(absl::Span<const uint64_t> keys, absl::Span<const uint32_t> positions,
                        AbsentRows mode, float* values, uint8_t* presence) const {
  const size_t num_values = rule_.layout().num_values();
  MutexLock lock(&mutex_);
  ForEachRow(
      keys, positions, num_values * sizeof(float), {values, num_values},
      [](uint64_t) -> float* { return nullptr; },
      [&](uint32_t position, const float* row) {
        float* const out = values + position * num_values;
        if (row != nullptr) {
          std::memcpy(out, row, num_values * sizeof(float));
          presence[position / 8] |= static_cast<uint8_t>(1 << (position % 8));
        } else if (mode == AbsentRows::kInitialValues) {
          rule_.InitValues(keys[position], out);
        } else {
          std::memset(out, 0, num_values * sizeof(float));
        }
      });
}

// The analysis does not see that a lambda runs where the lock is held.
int64_t TableShard::Update(absl::Span<const uint64_t> keys, absl::Span<const uint32_t> positions,
                           const float* gradients, absl::Span<const uint32_t> sample_counts,
                           RowRule::Step* step) {
  const size_t num_values = rule_.layout().num_values();
  MutexLock lock(&mutex_);
  const uint32_t rows_before = arena_.num_rows();
  ForEachRow(
      keys, positions, rule_.layout().num_floats() * sizeof(float), {gradients, num_values},
      [&](uint64_t hash) NO_THREAD_SAFETY_ANALYSIS { return AddRow(hash, /*init=*/true); },
      [&](uint32_t position, float* row) {
        absl::optional<uint32_t> sample_count;
        if (!sample_counts.empty()) sample_count = sample_counts[position];
        step->Apply(gradients + position * num_values, sample_count, row);
      });
  return arena_.num_rows() - rows_before;
}

int64_t TableShard::CreateRows(absl::Span<const uint64_t> keys,
                               absl::Span<const uint32_t> positions) {
  MutexLock lock(&mutex_);
  const uint32_t rows_before = arena_.num_rows();
  ForEachRow(
      keys, positions, rule_.layout().num_floats() * sizeof(float), {nullptr, 0},
      [&](uint64_t hash) NO_THREAD_SAFETY_ANALYSIS { return AddRow(hash, /*init=*/true); },
      [](uint32_t, float*) {});
  return arena_.num_rows() - rows_before;
}

void TableShard::ReadRows(absl::Span<const uint64_t> keys, absl::Span<const uint32_t> positions,
                          float* rows) const {
  const size_t num_floats = rule_.layout().num_floats();
  MutexLock lock(&mutex_);
  ForEachRow(
      keys, positions, num_floats * sizeof(float), {rows, num_floats},
      [](uint64_t) -> float* { return nullptr; },
      [&](uint32_t position, const float* row) {
        CHECK(row != nullptr) << "no row of key " << keys[position];
        std::memcpy(rows + position * num_floats, row, num_floats * sizeof(float));
      });
}

void TableShard::WriteRows(absl::Span<const uint64_t> keys, absl::Span<const uint32_t> positions,
                           const float* rows) {
  const size_t num_floats = rule_.layout().num_floats();
  MutexLock lock(&mutex_);
  ForEachRow(
      keys, positions, num_floats * sizeof(float), {rows, num_floats},
      [&](uint64_t hash) NO_THREAD_SAFETY_ANALYSIS { return AddRow(hash, /*init=*/false); },
      [&](uint32_t position, float* row) {
        std::memcpy(row, rows + position * num_floats, num_floats * sizeof(float));
      });
}

void TableShard::AppendKeys(int first_partition, int last_partition,
                            std::vector<uint64_t>* keys) const {
  MutexLock lock(&mutex_);
  index_.ForEach([&](uint64_t key, uint32_t) {
    const int partition = PartitionOf(key);
    if (first_partition <= partition && partition <= last_partition) keys->push_back(key);
  });
}

void TableShard::Clear() {
  MutexLock lock(&mutex_);
  index_ = RowIndex(/*reserve_rows=*/0, phase_);
  arena_.Clear();
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
