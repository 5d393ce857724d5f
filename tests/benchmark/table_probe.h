// The bare loop with which the embedding table is compared: it finds rows and uses them,
// prefetching in batches, and does nothing else. It has no locks, no growth, no absent keys and one
// fixed dim, so it shows the rate that the machine's memory allows.
//
// Its index is one flat array of 16-byte entries {u64 key, u32 row}, at load .75, with linear
// probing. Its rows are aligned and have 16 values and 16 accumulators, 128 bytes in all. It
// requests huge pages as the table does.
//
// Not thread-safe.

#ifndef SATRAP_TESTS_BENCHMARK_TABLE_PROBE_H_
#define SATRAP_TESTS_BENCHMARK_TABLE_PROBE_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "embedding_ps/table/page_block.h"

namespace satrap {

class TableProbe {
 public:
  static constexpr size_t kDim = 16;

  // REQUIRES: keys are unique and uniform over u64
  explicit TableProbe(absl::Span<const uint64_t> keys);

  // Copies the values of `keys` to `values`, [keys.size(), kDim]. `ahead`: the number of keys
  // between a prefetch and its use. REQUIRES: all keys are present; 0 < ahead <= 64
  void Lookup(absl::Span<const uint64_t> keys, size_t ahead, float* values) const;
  // One Adagrad step per key, with the same arithmetic as in the table. Otherwise like Lookup.
  void Update(absl::Span<const uint64_t> keys, size_t ahead, const float* gradients,
              float learning_rate);

 private:
  struct Entry {
    uint64_t key;
    uint32_t row;
  };
  static constexpr uint32_t kEmpty = 0xffffffff;

  size_t num_entries_;
  PageBlock entries_;
  PageBlock rows_;
};

}  // namespace satrap

#endif  // SATRAP_TESTS_BENCHMARK_TABLE_PROBE_H_
