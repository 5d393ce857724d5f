// For how long a run in pods may lack members, over its generations.

#include <string>

#include "common/role/ending.h"
#include "deploy/coordinator/testing/coordinator_fixture.h"
#include "gmock/gmock.h"

namespace satrap {
namespace {

using ::testing::HasSubstr;

class CoordinatorAttendanceTest : public CoordinatorFixture {
 protected:
  CoordinatorAttendanceTest() {
    options_.timeouts.start_timeout_ms = 60000;
    BeginNewRunInPods();
  }
  // For `seconds`, all members send a heartbeat each second, except that embedding_ps 1 sends one
  // only if `complete`. NN worker 0 is never ready.
  void Load(int seconds, bool complete) {
    RegisterAll();
    for (int i = 0; i < seconds && state() == STARTING; ++i) {
      EXPECT_TRUE(Heartbeat(DATA_LOADER, 0).ok());
      EXPECT_TRUE(Heartbeat(EMBEDDING_WORKER, 0).ok());
      EXPECT_TRUE(Heartbeat(EMBEDDING_PS, 0).ok());
      if (complete) {
        EXPECT_TRUE(Heartbeat(EMBEDDING_PS, 1).ok());
      }
      HeartbeatRequest loading = HeartbeatOf(NN_WORKER, 0);
      loading.set_ready(false);
      EXPECT_TRUE(Call<HeartbeatAnswer>(kHeartbeat, loading).ok());
      executor_.AdvanceBy(1000 * 1000);
      disk_executor_.RunReady();
    }
  }
};

// If the network of a cluster is split, its halves take the run from each other, and neither half
// ever has all members.
TEST_F(CoordinatorAttendanceTest, TheTimeWithoutAllMembersCountsOverGenerations) {
  for (int generation = 1; generation <= 5; ++generation) {
    Load(11, /*complete=*/false);
    EXPECT_EQ(state(), STARTING) << "generation " << generation;
    BeginInPods(1, EndingOf(Ending::SUPERSEDED, "another coordinator"));
  }
  Load(7, /*complete=*/false);
  EXPECT_EQ(state(), FAILED);
  EXPECT_EQ(reason(), "after 60 s there is still no embedding_ps 1");
  EXPECT_EQ(Log().end()->state(), FAILED);
}

TEST_F(CoordinatorAttendanceTest, WhoeverIsThereMayComeAlthoughTheTimeIsOver) {
  Load(59, /*complete=*/false);
  BeginInPods(1);
  executor_.AdvanceBy(4 * 1000 * 1000);
  EXPECT_EQ(state(), STARTING);
  Load(1, /*complete=*/true);
  Load(100, /*complete=*/true);
  EXPECT_EQ(state(), STARTING) << "loading may take long";
}

TEST_F(CoordinatorAttendanceTest, AGenerationThatHadAllItsMembersIsTheBeginningOfTheTime) {
  Load(50, /*complete=*/false);
  Load(100, /*complete=*/true);
  EXPECT_TRUE(Log().entries().back().has_complete());
  BeginInPods(1, EndingOf(Ending::MEMBER_LOST, "embedding_ps 0 was killed"));
  Load(59, /*complete=*/false);
  EXPECT_EQ(state(), STARTING);
  Load(2, /*complete=*/false);
  EXPECT_EQ(state(), FAILED);
}

TEST_F(CoordinatorAttendanceTest, ACutSaysThatAllWereThere) {
  StartRun();
  ASSERT_TRUE(MakeAndCommit(1).ok());
  const size_t entries = Log().number();
  for (int i = 0; i < 20; ++i) {
    BeatAll();
    executor_.AdvanceBy(1000 * 1000);
    disk_executor_.RunReady();
  }
  EXPECT_EQ(Log().number(), entries);
  EXPECT_EQ(state(), RUNNING);
}

TEST_F(CoordinatorAttendanceTest, ALogThatDoesNotTakeItEndsNothing) {
  std::string warning;
  options_.warn = [&warning](const std::string& text) { warning = text; };
  BeginNewRunInPods();
  Break("hard_link ");
  Load(30, /*complete=*/true);
  EXPECT_EQ(state(), STARTING);
  EXPECT_THAT(warning, HasSubstr("run's log that all members are there: "));
}

TEST_F(CoordinatorAttendanceTest, WithALauncherEachGenerationCountsForItself) {
  options_.in_pods = false;
  BeginNewRun();
  Load(59, /*complete=*/false);
  Begin("embedding_ps 1 was killed");
  Load(59, /*complete=*/false);
  EXPECT_EQ(state(), STARTING);
  Load(2, /*complete=*/false);
  EXPECT_EQ(state(), RESTARTING);
  EXPECT_FALSE(Log().entries().back().has_complete());
}

}  // namespace
}  // namespace satrap
