#include "tests/benchmark/table_probe.h"

#include <cmath>
#include <cstring>

#include "common/numeric/vectorize.h"

namespace satrap {
namespace {

constexpr size_t kRowFloats = 2 * TableProbe::kDim;
constexpr size_t kMaxAhead = 64;  // a power of two, so that the compiler makes % a mask
// Entries after the last home entry, so that a probe never has to wrap around.
constexpr size_t kSpareEntries = 1024;

size_t HomeOf(uint64_t key, size_t num_entries) {
  return static_cast<size_t>((static_cast<unsigned __int128>(key) * num_entries) >> 64);
}

template <typename Entry>
float* FindRow(const Entry* entries, float* rows, size_t num_entries, uint64_t key) {
  const Entry* entry = entries + HomeOf(key, num_entries);
  while (entry->key != key) ++entry;
  return rows + entry->row * kRowFloats;
}

// A software pipeline over the keys. In step i it prefetches the entry of key i, finds key i -
// ahead and prefetches its row, and uses the row of key i - 2 * ahead.
template <typename Entry>
SATRAP_VECTORIZE_SAME_BITS void LookupLoop(const Entry* entries, float* rows, size_t num_entries,
                                           const uint64_t* keys, size_t n, size_t ahead,
                                           float* values) {
  const float* found[kMaxAhead];
  std::fill_n(found, kMaxAhead, rows);
  for (size_t i = 0; i < n + 2 * ahead; ++i) {
    if (i < n) __builtin_prefetch(entries + HomeOf(keys[i], num_entries));
    if (i >= 2 * ahead) {
      const size_t j = i - 2 * ahead;
      std::memcpy(values + j * TableProbe::kDim, found[j % kMaxAhead],
                  TableProbe::kDim * sizeof(float));
    }
    if (i >= ahead && i - ahead < n) {
      const size_t j = i - ahead;
      const float* const row = FindRow(entries, rows, num_entries, keys[j]);
      found[j % kMaxAhead] = row;
      __builtin_prefetch(row);
    }
  }
}

// The same pipeline as LookupLoop. A row and its accumulators are two cache lines, so both are
// prefetched.
template <typename Entry>
SATRAP_VECTORIZE_SAME_BITS void UpdateLoop(const Entry* entries, float* rows, size_t num_entries,
                                           const uint64_t* keys, size_t n, size_t ahead,
                                           const float* gradients, float learning_rate) {
  float* found[kMaxAhead];
  std::fill_n(found, kMaxAhead, rows);
  for (size_t i = 0; i < n + 2 * ahead; ++i) {
    if (i < n) __builtin_prefetch(entries + HomeOf(keys[i], num_entries));
    if (i >= 2 * ahead) {
      const size_t j = i - 2 * ahead;
      float* __restrict const row = found[j % kMaxAhead];
      const float* __restrict const gradient = gradients + j * TableProbe::kDim;
      for (size_t e = 0; e < TableProbe::kDim; ++e) {
        const float accumulator = row[TableProbe::kDim + e] + gradient[e] * gradient[e];
        row[TableProbe::kDim + e] = accumulator;
        row[e] -= learning_rate * gradient[e] / (std::sqrt(accumulator) + 1e-10f);
      }
    }
    if (i >= ahead && i - ahead < n) {
      const size_t j = i - ahead;
      float* const row = FindRow(entries, rows, num_entries, keys[j]);
      found[j % kMaxAhead] = row;
      __builtin_prefetch(row, 1);
      __builtin_prefetch(row + TableProbe::kDim, 1);
    }
  }
}

}  // namespace

TableProbe::TableProbe(absl::Span<const uint64_t> keys)
    : num_entries_(keys.size() * 4 / 3),
      entries_((num_entries_ + kSpareEntries) * sizeof(Entry)),
      rows_(keys.size() * kRowFloats * sizeof(float)) {
  Entry* const entries = reinterpret_cast<Entry*>(entries_.data());
  float* const rows = reinterpret_cast<float*>(rows_.data());
  for (size_t i = 0; i < num_entries_ + kSpareEntries; ++i) entries[i].row = kEmpty;
  for (size_t row = 0; row < keys.size(); ++row) {
    Entry* entry = entries + HomeOf(keys[row], num_entries_);
    while (entry->row != kEmpty) ++entry;
    *entry = {keys[row], static_cast<uint32_t>(row)};
    for (size_t e = 0; e < kDim; ++e) rows[row * kRowFloats + e] = 0.01f;
  }
}

void TableProbe::Lookup(absl::Span<const uint64_t> keys, size_t ahead, float* values) const {
  LookupLoop(reinterpret_cast<const Entry*>(entries_.data()),
             reinterpret_cast<float*>(rows_.data()), num_entries_, keys.data(), keys.size(), ahead,
             values);
}

void TableProbe::Update(absl::Span<const uint64_t> keys, size_t ahead, const float* gradients,
                        float learning_rate) {
  UpdateLoop(reinterpret_cast<const Entry*>(entries_.data()),
             reinterpret_cast<float*>(rows_.data()), num_entries_, keys.data(), keys.size(), ahead,
             gradients, learning_rate);
}

}  // namespace satrap
