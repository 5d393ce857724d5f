// A KeyOrder numbers the keys of one shard. The ordinal of a key is its position among all keys
// that the shard may hold. Ordinals ascend with the keys, and thus by partition. They are
// distributed over [0, num_partitions * 2^52) as evenly as the keys are over their partitions.
//
// A shard holds every step-th partition. An index that is sorted by ordinals is therefore sorted by
// partition and by key, which is the order of saved rows.
//
// A value type; constant after construction.

#ifndef SATRAP_EMBEDDING_PS_TABLE_KEY_ORDER_H_
#define SATRAP_EMBEDDING_PS_TABLE_KEY_ORDER_H_

#include <cstdint>

#include "common/numeric/hash.h"

namespace satrap {

class KeyOrder {
 public:
  // The number of low bits that a key shares with its ordinal: the key's place within its
  // partition.
  static constexpr int kLowBits = 52;
  static constexpr uint64_t kLowMask = (uint64_t{1} << kLowBits) - 1;

  KeyOrder() = default;
  // Orders the keys of a shard that has `num_partitions` partitions: `first`, first + step, and so
  // on. REQUIRES: 0 <= first, 1 <= step <= kNumPartitions, and all partitions exist
  KeyOrder(int first, int step, int num_partitions)
      : first_(static_cast<uint64_t>(first)),
        step_(static_cast<uint64_t>(step)),
        reciprocal_((uint64_t{1} << kShift) / step_ + 1),
        num_partitions_(num_partitions) {}

  // May be 0, because a table can have more shards than partitions.
  int num_partitions() const { return num_partitions_; }

  // REQUIRES: the key's partition belongs to the shard
  uint64_t OrdinalOf(uint64_t key) const {
    // A multiplication replaces the division. The result is exact, because a partition is below
    // 2^12 and kShift is 28.
    const uint64_t nth = (((key >> kLowBits) - first_) * reciprocal_) >> kShift;
    return nth << kLowBits | (key & kLowMask);
  }
  uint64_t KeyOf(uint64_t ordinal) const {
    return (first_ + (ordinal >> kLowBits) * step_) << kLowBits | (ordinal & kLowMask);
  }

 private:
  static constexpr int kShift = 28;

  uint64_t first_ = 0;
  uint64_t step_ = 1;
  uint64_t reciprocal_ = (uint64_t{1} << kShift) + 1;
  int num_partitions_ = kNumPartitions;
};

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_PS_TABLE_KEY_ORDER_H_
