#include "nn_worker/rank/staleness_permit.h"

#include <utility>

#include "gtest/gtest.h"

namespace satrap {
namespace {

TEST(StalenessPermitTest, NoMoreThanTheCapacityAreOut) {
  StalenessPermits permits(2);
  auto a = permits.TryTake();
  auto b = permits.TryTake();
  EXPECT_TRUE(a.has_value());
  EXPECT_TRUE(b.has_value());
  EXPECT_FALSE(permits.TryTake().has_value());
  EXPECT_EQ(permits.in_use(), 2);
}

TEST(StalenessPermitTest, DestroyingOneMakesRoomForOne) {
  StalenessPermits permits(1);
  permits.TryTake();
  EXPECT_EQ(permits.in_use(), 0);
  EXPECT_TRUE(permits.TryTake().has_value());
}

TEST(StalenessPermitTest, MovingDoesNotGiveBack) {
  StalenessPermits permits(2);
  auto a = permits.TryTake();
  {
    StalenessPermit moved = *std::move(a);
    a.reset();
    EXPECT_EQ(permits.in_use(), 1);
  }
  EXPECT_EQ(permits.in_use(), 0);
}

TEST(StalenessPermitTest, AssigningGivesTheOldOneBack) {
  StalenessPermits permits(2);
  StalenessPermit a = *permits.TryTake();
  StalenessPermit b = *permits.TryTake();
  a = std::move(b);
  EXPECT_EQ(permits.in_use(), 1);
}

TEST(StalenessPermitTest, AGrownPoolGivesMorePermitsAndKeepsThoseInUse) {
  StalenessPermits permits(1);
  const auto first = permits.TryTake();
  EXPECT_FALSE(permits.TryTake().has_value());
  permits.Grow(2);
  const auto second = permits.TryTake();
  EXPECT_TRUE(second.has_value());
  EXPECT_FALSE(permits.TryTake().has_value());
  EXPECT_EQ(permits.in_use(), 2);
}

}  // namespace
}  // namespace satrap
