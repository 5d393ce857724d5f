// Decides when a supervisor starts its role again.
//
// A role is started again whatever its exit code is, because another process of the run may still
// need it. The pause before the start depends on the exit code:
//
//   75, 76, a signal   none; but 0.1, 0.2, 0.4 ... 5 s as long as the role ends before it is ready
//   0, 1, 77, others   5, 10, 20, 30 s
//
// The pause is never shorter than the one in the table of causes (common/role/cause_table.h).
//
// The coordinator begins generations, so for its own restarts the rules of the launcher apply
// (RestartCount), with the launcher's causes, pauses and max_restarts. After the exit codes 0 and 1
// it is started again like any role: the run's log says how the run has ended, and the next
// coordinator tells everybody. Where the launcher would end the run, the pause is 5 s, and the next
// coordinator finds in the log that no restart is left.
//
// Not thread-safe.

#ifndef SATRAP_DEPLOY_POD_RESTART_RULE_H_
#define SATRAP_DEPLOY_POD_RESTART_RULE_H_

#include <cstdint>
#include <string>

#include "deploy/launcher/process/restart_count.h"
#include "proto/control.pb.h"

namespace satrap {

// How a process of a role has ended.
struct RoleEnd {
  int wait_status = 0;  // waitpid's
  std::string how;      // "was killed by signal 9 (Killed)"
  Ending ending;        // the Ending it wrote, or one made from its exit
  bool has_left = false;
  int64_t lived_ms = 0;
  int64_t pid = 0;  // 0: it was not started
};

// The end of process `index` of `role`, with the ending that it has written to `ending_path`, if
// any. `how` describes its exit if more is known than the status says; empty: as DescribeExit does.
RoleEnd EndOf(Role role, int index, int wait_status, const std::string& ending_path,
              int64_t lived_ms, const std::string& how = "");

// What the next process of the same pod tells the coordinator about this end
// (RegisterRequest.before).
Ending ToldByTheNext(Role role, int index, const RoleEnd& end);

class RoleRestarts {
 public:
  // The pause in ms before the role is started again.
  int64_t PauseMs(const RoleEnd& end);

 private:
  int before_ready_ = 0;  // ends in a row before it was ready
  int final_ = 0;         // exits in a row that do not ask for a restart
};

class CoordinatorRestarts {
 public:
  explicit CoordinatorRestarts(int max_restarts) : max_restarts_(max_restarts) {}
  // As RoleRestarts::PauseMs. `cut` is the run's newest cut according to its log, or empty.
  int64_t PauseMs(const RoleEnd& end, const std::string& cut);

 private:
  const int max_restarts_;
  std::string cut_;
  RestartCount count_;
  RoleRestarts after_the_end_;
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_POD_RESTART_RULE_H_
