#include "common/role/kill_points.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "absl/types/optional.h"
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

// The number of times that `point` is reached until the process is killed; 9 if it is not killed
// within eight times.
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

// The exit code of a process with number 1 that kills itself; -1 if it still runs after ten
// seconds. Nullopt if the machine does not allow a new namespace for process numbers.
absl::optional<int> ExitCodeOfProcessOne() {
  int ended[2];
  if (pipe2(ended, O_CLOEXEC) != 0) return -1;
  const pid_t parent = fork();
  if (parent == 0) {
    if (unshare(CLONE_NEWPID) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0) _exit(0);
    const pid_t one = fork();  // the first one in its namespace
    if (one == 0) KillThisProcess();
    pollfd waited = {static_cast<int>(syscall(SYS_pidfd_open, one, 0)), POLLIN, 0};
    int status = 0;
    int code = -1;
    if (poll(&waited, 1, 10000) == 1 && waitpid(one, &status, 0) == one) {
      code = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
    } else {
      kill(one, SIGKILL);
    }
    if (write(ended[1], &code, sizeof(code)) < 0) _exit(1);
    _exit(0);
  }
  close(ended[1]);
  int code = -1;
  const bool told = read(ended[0], &code, sizeof(code)) == sizeof(code);
  close(ended[0]);
  waitpid(parent, nullptr, 0);
  if (!told) return absl::nullopt;
  return code;
}

TEST(KillPointsDeathTest, AProcessNumberedOneEndsToo) {
  const absl::optional<int> code = ExitCodeOfProcessOne();
  if (!code.has_value()) GTEST_SKIP() << "no process numbers of one's own are allowed here";
  EXPECT_EQ(*code, kExitKilled);
}

}  // namespace
}  // namespace satrap
