#include "nn_worker/rank/schedule/ordered_schedule.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

// "lane.seq" of each batch of an epoch whose lanes have these numbers of batches.
std::string OrderOf(const std::vector<uint64_t>& batches_of_lane) {
  OrderedSchedule schedule(static_cast<int>(batches_of_lane.size()));
  std::string order;
  while (auto batch = schedule.Next()) {
    absl::StrAppend(&order, order.empty() ? "" : " ", batch->lane, ".", batch->seq);
    schedule.Take(batch->seq + 1 == batches_of_lane[batch->lane]);
  }
  return order;
}

TEST(OrderedScheduleTest, OneLaneIsInItsOwnOrder) { EXPECT_EQ(OrderOf({3}), "0.0 0.1 0.2"); }

TEST(OrderedScheduleTest, LanesTakeTurns) { EXPECT_EQ(OrderOf({2, 2}), "0.0 1.0 0.1 1.1"); }

TEST(OrderedScheduleTest, AnExhaustedLaneLeavesTheRotation) {
  EXPECT_EQ(OrderOf({3, 1, 2}), "0.0 1.0 2.0 0.1 2.1 0.2");
  EXPECT_EQ(OrderOf({1, 3}), "0.0 1.0 1.1 1.2");
}

TEST(OrderedScheduleTest, GoesOnFromAnyOfItsPositions) {
  const std::vector<uint64_t> batches = {3, 1, 2};
  for (int taken = 0; taken <= 6; ++taken) {
    OrderedSchedule first(3);
    std::string order;
    const auto take = [&](OrderedSchedule* schedule) {
      const auto batch = schedule->Next();
      absl::StrAppend(&order, " ", batch->lane, ".", batch->seq);
      schedule->Take(batch->seq + 1 == batches[batch->lane]);
    };
    for (int i = 0; i < taken; ++i) take(&first);
    RunPosition position;
    first.FillPosition(&position);
    OrderedSchedule second(3, position);
    while (second.Next().has_value()) take(&second);
    EXPECT_EQ(order, " 0.0 1.0 2.0 0.1 2.1 0.2") << taken;
  }
}

TEST(OrderedScheduleTest, TheBatchWhoseTurnItIsDoesNotChangeUntilTaken) {
  OrderedSchedule schedule(2);
  EXPECT_EQ(schedule.Next()->lane, 0u);
  EXPECT_EQ(schedule.Next()->lane, 0u);
  schedule.Take(false);
  EXPECT_EQ(schedule.Next()->lane, 1u);
}

}  // namespace
}  // namespace satrap
