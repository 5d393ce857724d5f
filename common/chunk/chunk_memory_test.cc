#include "common/chunk/chunk_memory.h"

#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace satrap::rpc {
namespace {

constexpr int64_t kPatienceUs = 1000;

class ChunkMemoryTest : public testing::Test {
 protected:
  // Asks for `bytes` for call `number` to the peer `asker`.
  ChunkMemory::Share Take(uint64_t bytes, uint64_t number, const void* asker = nullptr) {
    return ChunkMemory::Take(memory_, bytes, {asker, CallName{"method", 1, number, 0}, now_us_});
  }

  const std::shared_ptr<ChunkMemory> memory_ = std::make_shared<ChunkMemory>(100, kPatienceUs);
  int64_t now_us_ = 0;
};

TEST_F(ChunkMemoryTest, SharesAreOfOneMemoryAndReturnToIt) {
  ChunkMemory::Share first = ChunkMemory::Take(memory_, 60, {});
  EXPECT_TRUE(first);
  EXPECT_FALSE(ChunkMemory::Take(memory_, 41, {}));
  EXPECT_FALSE(ChunkMemory::Take(memory_, ~uint64_t{0}, {}));
  {
    const ChunkMemory::Share second = ChunkMemory::Take(memory_, 40, {});
    EXPECT_TRUE(second);
    EXPECT_EQ(memory_->taken_bytes(), 100);
  }
  EXPECT_EQ(memory_->taken_bytes(), 60);
  first = ChunkMemory::Share();
  EXPECT_EQ(memory_->taken_bytes(), 0);
}

TEST_F(ChunkMemoryTest, ALargeMessageIsNotStarvedBySmallOnes) {
  std::vector<ChunkMemory::Share> small;
  for (uint64_t number = 1; number <= 3; ++number) small.push_back(Take(30, number));
  EXPECT_FALSE(Take(90, 4));
  for (uint64_t number = 5; !small.empty(); ++number) {
    small.erase(small.begin());
    EXPECT_FALSE(Take(30, number)) << "its turn comes after that of the large one";
    EXPECT_EQ(static_cast<bool>(Take(90, 4)), small.empty());
  }
  EXPECT_TRUE(Take(30, 8));
}

TEST_F(ChunkMemoryTest, RoomBesidesTheFirstInTurnIsForAll) {
  ChunkMemory::Share held = Take(50, 1);
  EXPECT_FALSE(Take(60, 2));
  EXPECT_FALSE(Take(1, 3)) << "50 bytes are left, and 60 are to come";
  held = ChunkMemory::Share();
  const ChunkMemory::Share beside = Take(40, 3);
  EXPECT_TRUE(beside) << "100 bytes are left";
  EXPECT_TRUE(Take(60, 2));
}

TEST_F(ChunkMemoryTest, TurnsAreInTheOrderOfTheFirstRefusals) {
  ChunkMemory::Share all = Take(100, 1);
  EXPECT_FALSE(Take(70, 2));
  EXPECT_FALSE(Take(70, 3));
  EXPECT_FALSE(Take(70, 2)) << "asking again keeps the turn";
  all = ChunkMemory::Share();
  EXPECT_FALSE(Take(70, 3));
  ChunkMemory::Share second = Take(70, 2);
  EXPECT_TRUE(second);
  EXPECT_FALSE(Take(30, 4)) << "now it is the turn of call 3";
  second = ChunkMemory::Share();
  EXPECT_TRUE(Take(70, 3));
}

TEST_F(ChunkMemoryTest, ACallThatStopsAskingLosesItsTurn) {
  const ChunkMemory::Share held = Take(50, 1);
  EXPECT_FALSE(Take(60, 2));
  now_us_ += kPatienceUs - 1;
  EXPECT_FALSE(Take(60, 2));
  now_us_ += kPatienceUs - 1;
  EXPECT_FALSE(Take(40, 3));
  now_us_ += 1;
  EXPECT_TRUE(Take(40, 3));
  EXPECT_EQ(memory_->num_waiting(), 0u);
}

TEST_F(ChunkMemoryTest, EqualNamesOfTwoPeersAreTwoCalls) {
  const int one = 1;
  const int other = 2;
  ChunkMemory::Share held = Take(50, 1);
  EXPECT_FALSE(Take(60, 2, &one));
  held = ChunkMemory::Share();
  EXPECT_FALSE(Take(60, 2, &other));
  EXPECT_TRUE(Take(60, 2, &one));
}

TEST_F(ChunkMemoryTest, WhoeverCannotHaveATurnHoldsUpNobody) {
  ChunkMemory::Share held = Take(50, 1);
  EXPECT_FALSE(Take(101, 2)) << "it could never fit";
  EXPECT_FALSE(ChunkMemory::Take(memory_, 60, {})) << "it has no name to come again by";
  EXPECT_EQ(memory_->num_waiting(), 0u);
  EXPECT_TRUE(Take(50, 3));
}

TEST_F(ChunkMemoryTest, TheNumberOfTurnsHasABound) {
  ChunkMemory::Share all = Take(100, 1);
  for (uint64_t i = 0; i < ChunkMemory::kMostWaiting + 10; ++i) EXPECT_FALSE(Take(1, 2 + i));
  EXPECT_EQ(memory_->num_waiting(), ChunkMemory::kMostWaiting);
  all = ChunkMemory::Share();
  EXPECT_TRUE(Take(1, 2 + ChunkMemory::kMostWaiting)) << "it takes its chance";
}

}  // namespace
}  // namespace satrap::rpc
