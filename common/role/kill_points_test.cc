#include "common/role/kill_points.h"

#include "gtest/gtest.h"

namespace satrap {
namespace {

JobConfig JobWith(KillPoint::Point point, int replica, int64_t visit, int64_t generation) {
  JobConfig job;
  KillPoint* added = job.add_kill_points();
  added->set_point(point);
  added->set_replica(replica);
  added->set_visit(visit);
  added->set_generation(generation);
  return job;
}

// The visits of `point` until it kills, at most 9.
int VisitsUntilKill(const JobConfig& job, int replica, uint64_t generation,
                    KillPoint::Point point) {
  bool killed = false;
  KillPoints points(job, replica, generation, [&killed] { killed = true; });
  for (int visit = 1; visit < 9; ++visit) {
    points.Reach(point);
    if (killed) return visit;
  }
  return 9;
}

TEST(KillPoints, KillAtTheVisitThatTheJobNames) {
  const JobConfig job = JobWith(KillPoint::PS_AFTER_MARK, 1, 3, 2);
  EXPECT_EQ(VisitsUntilKill(job, 1, 2, KillPoint::PS_AFTER_MARK), 3);
}

TEST(KillPoints, SpareOtherReplicasGenerationsAndPoints) {
  const JobConfig job = JobWith(KillPoint::PS_AFTER_MARK, 1, 1, 2);
  EXPECT_EQ(VisitsUntilKill(job, 0, 2, KillPoint::PS_AFTER_MARK), 9);
  EXPECT_EQ(VisitsUntilKill(job, 1, 1, KillPoint::PS_AFTER_MARK), 9);
  EXPECT_EQ(VisitsUntilKill(job, 1, 2, KillPoint::RANK_AFTER_MARK), 9);
}

TEST(KillPoints, AreOffByDefault) {
  KillPoints points;
  points.Reach(KillPoint::PS_AFTER_MARK);
  EXPECT_EQ(VisitsUntilKill(JobConfig(), 0, 1, KillPoint::PS_AFTER_MARK), 9);
}

TEST(KillPointsDeathTest, KillThisProcessEndsAsSigkillDoes) {
  EXPECT_EXIT(KillThisProcess(), testing::KilledBySignal(SIGKILL), "");
}

}  // namespace
}  // namespace satrap
