// The processes that ask for a place in a generation but have to wait, each with the reason: twins
// of members, processes of another build, processes whose index the job does not have, and every
// process that asks after the generation's end. Waiting processes ask every second, so a process
// that has not asked for kGoneUs counts as gone.
//
// At most kMost processes are kept: those that have asked most recently.
//
// Not thread-safe: the lock of the coordinator's engine guards it.

#ifndef SATRAP_DEPLOY_COORDINATOR_MEMBERS_WAITING_PROCESSES_H_
#define SATRAP_DEPLOY_COORDINATOR_MEMBERS_WAITING_PROCESSES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "proto/control.pb.h"

namespace satrap {

class WaitingProcesses {
 public:
  static constexpr size_t kMost = 4096;
  static constexpr int64_t kGoneUs = 5000000;

  // Call when a process has asked for a place. `why` says why it has to wait; empty if it got the
  // place.
  void OnAsked(const RegisterRequest& request, const std::string& why, int64_t now_us);
  void AddTo(StatusAnswer* answer, int64_t now_us) const;

 private:
  struct Process {
    Member member;
    uint64_t incarnation = 0;
    std::string holder;
    std::string why;
    int64_t first_us = 0;
    int64_t last_us = 0;
  };
  std::vector<Process> processes_;  // in the order in which they first asked
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_COORDINATOR_MEMBERS_WAITING_PROCESSES_H_
