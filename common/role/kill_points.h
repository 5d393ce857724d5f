// Points in the code at which a job can make a process end itself with SIGKILL, to test recovery on
// any cluster (KillPoint, proto/job.proto). Without kill_points in the job, Reach costs one
// comparison.
//
// Thread-safe.

#ifndef SATRAP_COMMON_ROLE_KILL_POINTS_H_
#define SATRAP_COMMON_ROLE_KILL_POINTS_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "common/thread/mutex.h"
#include "proto/job.pb.h"

namespace satrap {

class KillPoints {
 public:
  // Never kills.
  KillPoints() = default;
  // Uses the points of `job` that are meant for this replica in this generation. `kill` ends the
  // process; in a simulation it ends the simulated process.
  KillPoints(const JobConfig& job, int replica, uint64_t generation, std::function<void()> kill);

  // Call this where the code reaches the point.
  void Reach(KillPoint::Point point) {
    if (!armed_.empty()) Count(point);
  }

 private:
  struct Armed {
    KillPoint::Point point;
    int64_t visits_left;
  };
  void Count(KillPoint::Point point);

  const std::function<void()> kill_;
  Mutex mutex_;
  std::vector<Armed> armed_;  // the list is fixed; visits_left is guarded by mutex_
};

// The exit code of a process that the kernel protects from SIGKILL: 128 + SIGKILL. Shells and
// container runtimes show the same code for a process that was killed.
inline constexpr int kExitKilled = 137;

// Ends this process as SIGKILL does, in the middle of whatever other threads are doing. A process
// numbered 1 exits with kExitKilled.
[[noreturn]] void KillThisProcess();

}  // namespace satrap

#endif  // SATRAP_COMMON_ROLE_KILL_POINTS_H_
