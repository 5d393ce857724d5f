#include "nn_worker/device/host/execution_order.h"

#include <set>
#include <vector>

#include "gtest/gtest.h"

namespace satrap::host {
namespace {

std::vector<int64_t> All(const ExecutionOrder& order, int64_t count, uint64_t salt) {
  const Permutation permutation(order, count, salt);
  std::vector<int64_t> all;
  for (int64_t i = 0; i < count; ++i) all.push_back(permutation.At(i));
  return all;
}

TEST(ExecutionOrderTest, ForwardAndReverse) {
  EXPECT_EQ(All({ExecutionOrder::kForward}, 4, 1), (std::vector<int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(All({ExecutionOrder::kReverse}, 4, 1), (std::vector<int64_t>{3, 2, 1, 0}));
}

TEST(ExecutionOrderTest, ASeedGivesAPermutation) {
  for (const int64_t count : {1, 2, 3, 4, 30, 32, 1000}) {
    for (uint64_t salt = 0; salt < 20; ++salt) {
      const auto all = All({ExecutionOrder::kSeeded, 5}, count, salt);
      const std::set<int64_t> distinct(all.begin(), all.end());
      EXPECT_EQ(static_cast<int64_t>(distinct.size()), count);
      EXPECT_GE(*distinct.begin(), 0);
      EXPECT_LT(*distinct.rbegin(), count);
    }
  }
}

TEST(ExecutionOrderTest, TheSameSeedAndSaltGiveTheSameOrderAndOthersAnother) {
  const auto all = All({ExecutionOrder::kSeeded, 5}, 32, 1);
  EXPECT_EQ(all, All({ExecutionOrder::kSeeded, 5}, 32, 1));
  EXPECT_NE(all, All({ExecutionOrder::kSeeded, 6}, 32, 1));
  EXPECT_NE(all, All({ExecutionOrder::kSeeded, 5}, 32, 2));
}

// Two warps must run in both orders within a few barriers. Otherwise a missing barrier between them
// could go unnoticed.
TEST(ExecutionOrderTest, TwoComeInBothOrders) {
  std::set<int64_t> first;
  for (uint64_t salt = 0; salt < 20; ++salt) {
    first.insert(All({ExecutionOrder::kSeeded, 5}, 2, salt)[0]);
  }
  EXPECT_EQ(first.size(), 2u);
}

}  // namespace
}  // namespace satrap::host
