// When a supervisor starts its role again.
//
// A role is started again whatever it exits with, because another process of the run may still need
// it:
//
//   75, 76, a signal   at once; while it ends before it is ready, after 0.1, 0.2, 0.4 ... 5 s
//   0, 1, 77, others   after 5, 10, 20, 30 s
//   and not before the pause of the table of causes (common/role/cause_table.h)
//
// The coordinator begins generations, so for it the rules of the launcher hold (RestartCount): its
// causes, pauses and max_restarts. It is not started again if a restart cures nothing, and if
// somebody has stopped the run: the log does not tell that, and the next coordinator would go on.
//
// Not thread-safe.

#ifndef SATRAP_DEPLOY_POD_RESTART_RULE_H_
#define SATRAP_DEPLOY_POD_RESTART_RULE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "deploy/launcher/process/restart_count.h"
#include "proto/control.pb.h"

namespace satrap {

// How a process of a role has ended.
struct RoleEnd {
  int wait_status = 0;  // waitpid's
  std::string how;      // "was killed by signal 9 (Killed)"
  Ending ending;        // what it has left, or else what its exit says
  bool has_left = false;
  int64_t lived_ms = 0;
};

// The end of `index` of `role`, with the ending that it has left at `ending_path`, if any. `how`
// says more of its exit than the status does; empty: DescribeExit's.
RoleEnd EndOf(Role role, int index, int wait_status, const std::string& ending_path,
              int64_t lived_ms, const std::string& how = "");

class RoleRestarts {
 public:
  // The pause in ms before the role is started again.
  int64_t PauseMs(const RoleEnd& end);

 private:
  int before_ready_ = 0;  // ends in a row
  int final_ = 0;         // exits in a row that do not ask for a restart
};

class CoordinatorRestarts {
 public:
  explicit CoordinatorRestarts(int max_restarts) : max_restarts_(max_restarts) {}
  // `cut`: the run's newest one, by its log; may be empty. FAILED_PRECONDITION says why it is not
  // started again.
  absl::StatusOr<int64_t> PauseMs(const RoleEnd& end, const std::string& cut);

 private:
  const int max_restarts_;
  std::string cut_;
  RestartCount count_;
  RoleRestarts after_the_end_;
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_POD_RESTART_RULE_H_
