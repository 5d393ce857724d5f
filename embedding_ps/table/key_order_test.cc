#include "embedding_ps/table/key_order.h"

#include "common/numeric/random.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

TEST(KeyOrderTest, OrdinalsAscendWithTheKeysFillTheirRangeAndAreUndone) {
  SplitMix64 random(1);
  for (int step = 1; step <= kNumPartitions; ++step) {
    const int first = static_cast<int>(random.Below(kNumPartitions));
    const int count = (kNumPartitions - 1 - first) / step + 1;
    const KeyOrder order(first, step, count);
    uint64_t before = 0;
    for (int nth = 0; nth < count; ++nth) {
      const uint64_t partition = static_cast<uint64_t>(first + nth * step);
      for (const uint64_t low : {uint64_t{0}, random.Next() >> 12, KeyOrder::kLowMask}) {
        const uint64_t key = partition << 52 | low;
        const uint64_t ordinal = order.OrdinalOf(key);
        ASSERT_EQ(ordinal, static_cast<uint64_t>(nth) << 52 | low) << "step " << step;
        ASSERT_EQ(order.KeyOf(ordinal), key);
        ASSERT_GE(ordinal, before);
        before = ordinal;
      }
    }
  }
}

}  // namespace
}  // namespace satrap
