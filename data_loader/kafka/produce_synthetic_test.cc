#include "data_loader/kafka/produce_synthetic.h"

#include <gtest/gtest.h>

namespace satrap {
namespace {

// Tests only the division among partitions. tests/kafka/produce_test.cc tests writing with a
// broker.
TEST(RecordsOfPartition, AreThoseOfEveryRecordInTurn) {
  for (const uint64_t records : {0, 1, 4, 10, 11}) {
    uint64_t counted[4] = {};
    for (uint64_t i = 0; i < records; ++i) ++counted[i % 4];
    for (int partition = 0; partition < 4; ++partition) {
      EXPECT_EQ(RecordsOfPartition(records, partition, 4), counted[partition]);
    }
  }
}

TEST(RecordsPerLook, KeepASlowRateEvenAndAFastOneFast) {
  EXPECT_EQ(RecordsPerLook(0), 64u) << "as fast as the broker takes them";
  EXPECT_EQ(RecordsPerLook(.5), 1u);
  EXPECT_EQ(RecordsPerLook(1), 1u);
  EXPECT_EQ(RecordsPerLook(100), 5u);
  EXPECT_EQ(RecordsPerLook(1e6), 64u);
}

}  // namespace
}  // namespace satrap
