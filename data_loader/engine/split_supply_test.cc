#include "data_loader/engine/split_supply.h"

#include <gtest/gtest.h>

namespace satrap {
namespace {

std::vector<uint32_t> SplitsOf(SplitSupply* supply, uint32_t epoch) {
  std::vector<uint32_t> splits;
  bool more = true;
  while (more) {
    supply->NextSplit(epoch, [&](absl::StatusOr<absl::optional<uint32_t>> split) {
      more = split->has_value();
      if (more) splits.push_back(**split);
    });
  }
  return splits;
}

TEST(StaticSplitsTest, GivesItsSplitsInEveryEpoch) {
  StaticSplits splits(1, 3, 8);
  EXPECT_EQ(SplitsOf(&splits, 0), (std::vector<uint32_t>{1, 4, 7}));
  EXPECT_EQ(SplitsOf(&splits, 0), (std::vector<uint32_t>{}));
  EXPECT_EQ(SplitsOf(&splits, 1), (std::vector<uint32_t>{1, 4, 7}));
}

TEST(StaticSplitsTest, MayHaveNone) {
  StaticSplits splits(2, 3, 2);
  EXPECT_TRUE(SplitsOf(&splits, 0).empty());
}

}  // namespace
}  // namespace satrap
