#include "common/role/kill_points.h"

#include <unistd.h>

#include <csignal>
#include <utility>

namespace satrap {

KillPoints::KillPoints(const JobConfig& job, int replica, uint64_t generation,
                       std::function<void()> kill)
    : kill_(std::move(kill)) {
  for (const KillPoint& point : job.kill_points()) {
    if (point.replica() != replica || point.generation() != static_cast<int64_t>(generation)) {
      continue;
    }
    armed_.push_back({point.point(), point.visit()});
  }
}

void KillPoints::Count(KillPoint::Point point) {
  bool reached = false;
  {
    MutexLock lock(&mutex_);
    for (Armed& armed : armed_) {
      if (armed.point == point && --armed.visits_left == 0) reached = true;
    }
  }
  if (reached) kill_();
}

void KillThisProcess() {
  kill(getpid(), SIGKILL);
  // The signal cannot be blocked, and is delivered before kill returns. Only process number 1, such
  // as the first process of a container, gets here, because it does not receive a SIGKILL that it
  // sends to itself.
  _exit(kExitKilled);
}

}  // namespace satrap
