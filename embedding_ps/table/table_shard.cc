#include "embedding_ps/table/table_shard.h"

#include <algorithm>
#include <cstring>

#include "common/check.h"
#include "common/hash.h"

namespace satrap {
namespace {

// Keys go through the stages of a lookup in blocks, each stage a short loop of its own: a prefetch whose address misses
// the TLB occupies the core until it is translated, and the fewer instructions lie between two of them, the more are
// translated at once. A stage works kLead blocks behind the one before it, so that memory fetches while the core works.
#ifndef KB
#define KB 16
#define KL 2
#endif
constexpr size_t kBlock = KB;
constexpr size_t kLead = KL;
constexpr size_t kRing = 256;
constexpr size_t kCacheLineBytes = 64;

#ifdef TOUCH
inline void Bring(const void* p) { uint64_t v; asm volatile("movq (%1), %0" : "=r"(v) : "r"(p)); }
#else
inline void Bring(const void* p) { __builtin_prefetch(p); }
#endif
void Prefetch(const float* floats, size_t bytes) {
  const auto begin = reinterpret_cast<uintptr_t>(floats);
  for (uintptr_t line = begin / kCacheLineBytes; line * kCacheLineBytes < begin + bytes; ++line) {
    __builtin_prefetch(reinterpret_cast<const void*>(line * kCacheLineBytes));
  }
}
void PrefetchRow(const float* floats, size_t bytes) {
  if (floats == nullptr) return;
  const auto begin = reinterpret_cast<uintptr_t>(floats);
  for (uintptr_t line = begin / kCacheLineBytes; line * kCacheLineBytes < begin + bytes; ++line) {
    Bring(reinterpret_cast<const void*>(line * kCacheLineBytes));
  }
}

}  // namespace

TableShard::TableShard(const RowRule* rule, size_t reserve_rows)
    : rule_(*rule), index_(reserve_rows), arena_(rule->layout().stride_bytes()) {}

template <typename Absent, typename Visitor>
void TableShard::ForEachRow(absl::Span<const uint64_t> keys, absl::Span<const uint32_t> positions,
                            size_t touched_bytes, const Companion& companion, Absent absent,
                            Visitor visit) const {
  uint64_t hashes[kRing];
  float* rows[kRing];
  const size_t n = positions.size();
  // Calls stage(i) for the keys of block `b`, if there is one.
  const auto for_block = [n](size_t b, auto stage) {
    for (size_t i = b * kBlock, end = std::min(n, i + kBlock); i < end; ++i) stage(i);
  };
  const size_t num_blocks = (n + kBlock - 1) / kBlock;
  for (size_t b = 0; b < num_blocks + 2 * kLead; ++b) {
    for_block(b, [&](size_t i) { hashes[i % kRing] = RowIndex::HashOf(keys[positions[i]]); });
    for_block(b, [&](size_t i) { Bring(index_.Line(hashes[i % kRing])); });
    if (b < kLead) continue;
    for_block(b - kLead, [&](size_t i) {
      const uint32_t row = index_.Find(hashes[i % kRing]);
      rows[i % kRing] = row == RowIndex::kAbsent ? absent(hashes[i % kRing]) : arena_.Row(row);
    });
    for_block(b - kLead, [&](size_t i) { PrefetchRow(rows[i % kRing], touched_bytes); });
    for_block(b - kLead, [&](size_t i) {
      Prefetch(companion.floats + positions[i] * companion.width,
               companion.width * sizeof(float));
    });
    if (b < 2 * kLead) continue;
    for_block(b - 2 * kLead, [&](size_t i) { visit(positions[i], rows[i % kRing]); });
  }
}

float* TableShard::AddRow(uint64_t hash) {
  const uint32_t row = arena_.Add();
  index_.Insert(hash, row);
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

int64_t TableShard::Update(absl::Span<const uint64_t> keys, absl::Span<const uint32_t> positions,
                           const float* gradients, absl::Span<const uint32_t> sample_counts,
                           const UpdateContext& context) {
  const size_t num_values = rule_.layout().num_values();
  RowRule::Step step(rule_, context);
  MutexLock lock(&mutex_);
  const uint32_t rows_before = arena_.num_rows();
  ForEachRow(
      keys, positions, rule_.layout().num_floats() * sizeof(float), {gradients, num_values},
      [&](uint64_t hash) {
        float* const row = AddRow(hash);
        rule_.InitRow(RowIndex::KeyOf(hash), row);
        return row;
      },
      [&](uint32_t position, float* row) {
        step.Apply(gradients + position * num_values,
                   sample_counts.empty() ? 0 : sample_counts[position], row);
      });
  return arena_.num_rows() - rows_before;
}

int64_t TableShard::CreateRows(absl::Span<const uint64_t> keys,
                               absl::Span<const uint32_t> positions) {
  MutexLock lock(&mutex_);
  const uint32_t rows_before = arena_.num_rows();
  ForEachRow(
      keys, positions, rule_.layout().num_floats() * sizeof(float), {nullptr, 0},
      [&](uint64_t hash) {
        float* const row = AddRow(hash);
        rule_.InitRow(RowIndex::KeyOf(hash), row);
        return row;
      },
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
      [&](uint64_t hash) { return AddRow(hash); },
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
  index_ = RowIndex();
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
