// The places of a generation's members: who has them, who asks for one, who leaves one, and for how
// long one has been empty. A place that becomes free before training begins may be taken by another
// process, without ending the generation.
//
// The state's mutex guards it; callers of all public methods hold it.

#ifndef SATRAP_DEPLOY_COORDINATOR_MEMBERS_PLACES_H_
#define SATRAP_DEPLOY_COORDINATOR_MEMBERS_PLACES_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "deploy/coordinator/members/attendance.h"
#include "deploy/coordinator/members/members.h"
#include "deploy/coordinator/members/waiting_processes.h"
#include "deploy/coordinator/state/coordinator_state.h"
#include "proto/control.pb.h"
#include "proto/job.pb.h"

namespace satrap {

struct PlacesOptions {
  bool in_pods = false;  // else a launcher starts all processes, and replaces none
  std::string build;     // as in CoordinatorOptions
  int64_t heartbeat_timeout_ms = 0;
  int64_t start_timeout_ms = 0;
};

// What a heartbeat leads to.
struct Heard {
  absl::optional<HeartbeatAnswer> answer;  // its sender goes no further, and is told this
  absl::optional<Ending> moves;            // its sender leaves its machine, and the run trains
};

class Places {
 public:
  // The generation begins at `start_us`. At that time the run has already lacked members for
  // `lacked_us`. `state` is not owned.
  Places(CoordinatorState* state, const JobConfig& job, PlacesOptions options, int64_t start_us,
         int64_t lacked_us);

  const Members& members() const {
    state_->AssertHeld();
    return members_;
  }

  // Returns why the process has to wait, or an empty text if it is now registered. Errors are those
  // of the method Register (coordinator_engine.h).
  absl::StatusOr<std::string> Register(const RegisterRequest& request, int64_t now_us);
  // Errors are those of Members::Heartbeat. Ends the generation if the sender is a second process
  // of its index.
  absl::StatusOr<Heard> Heartbeat(const HeartbeatRequest& request, int64_t now_us);
  // Ends the generation if the failure is a member's. Otherwise sets `*stranger` to a warning about
  // the failure.
  FailAnswer Fail(const FailRequest& request, int64_t now_us, std::string* stranger);
  // Call when a member has been told how the run continues.
  void SetTold(Role role, uint32_t index) {
    state_->AssertHeld();
    members_.SetTold(role, index);
  }

  // Call regularly. Returns for how long the process was suspended since the last call.
  int64_t OnTick(int64_t now_us);
  // Ends the generation if a member is silent, or has been missing for too long. Where possible,
  // frees the places of silent members instead. Call it at every tick, with the result of OnTick as
  // `stall_us`.
  void Check(int64_t now_us, int64_t stall_us);
  // Whether all members have been there for a while.
  bool IsComplete(int64_t now_us) const {
    state_->AssertHeld();
    return attendance_.IsComplete(now_us);
  }

  void AddTo(StatusAnswer* answer, int64_t now_us) const;

 private:
  std::string WhyWait(const RegisterRequest& request) const;
  bool MayReplace() const REQUIRES(state_->mutex) {
    return options_.in_pods && state_->end.may_begin() && !state_->begins;
  }
  int64_t StallUs(int64_t now_us) const REQUIRES(state_->mutex);
  int64_t AwakeUs(int64_t now_us) const REQUIRES(state_->mutex) { return now_us - StallUs(now_us); }
  void NoteAttendance(int64_t now_us) REQUIRES(state_->mutex) {
    attendance_.Note(members_.Unheard().empty(), now_us);
  }
  Heard Leave(const HeartbeatRequest& request, int64_t now_us) REQUIRES(state_->mutex);

  CoordinatorState* const state_;
  const PlacesOptions options_;
  int64_t last_tick_us_ GUARDED_BY(state_->mutex);
  Attendance attendance_ GUARDED_BY(state_->mutex);
  Members members_ GUARDED_BY(state_->mutex);
  WaitingProcesses waiting_ GUARDED_BY(state_->mutex);
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_COORDINATOR_MEMBERS_PLACES_H_
