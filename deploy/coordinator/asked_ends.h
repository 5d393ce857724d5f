// Ends a generation on request: for a wish to stop or to change the size, or because a process
// leaves its machine (a move). While the run trains, the generation ends after a last cut; a stop
// or a move waits for that cut at most stop_seconds. Before and after training, a stop or a move
// ends the generation at once.
//
// The state's mutex guards this object; callers of Wish and Move hold it.

#ifndef SATRAP_DEPLOY_COORDINATOR_ASKED_ENDS_H_
#define SATRAP_DEPLOY_COORDINATOR_ASKED_ENDS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "common/thread/executor.h"
#include "deploy/coordinator/state/coordinator_state.h"
#include "proto/control.pb.h"
#include "proto/job.pb.h"
#include "proto/position.pb.h"

namespace satrap {

class AskedEnds {
 public:
  // What the generation began from.
  struct Start {
    std::string cut;  // empty: none
    RunPosition position;
    bool nothing_lost_before = false;  // as NothingWasLostBefore says
  };
  // Owns none of the pointers. `executor` runs timers.
  AskedEnds(CoordinatorState* state, const JobConfig* job, Start start, Executor* executor)
      : state_(state), job_(job), start_(std::move(start)), executor_(executor) {}

  // Sets the owner of this object. Timers that fire after `owner` is destroyed do nothing.
  // REQUIRES: called before all other methods
  void SetOwner(std::weak_ptr<void> owner) { owner_ = std::move(owner); }

  // Returns the wish's number. Errors are those of the method Wish (coordinator_engine.h).
  absl::StatusOr<uint64_t> Wish(const WishRequest& request);
  // Ends the generation because a process leaves its machine. `how` is the generation's ending.
  void Move(const Ending& how);

 private:
  bool takes_cuts() const REQUIRES(state_->mutex) {
    return job_->action() == JobConfig::TRAIN && !state_->training_is_over;
  }
  void StopAtOnce() REQUIRES(state_->mutex);
  void StopInTime() EXCLUDES(state_->mutex);
  void MoveInTime() EXCLUDES(state_->mutex);
  void AfterStopSeconds(void (AskedEnds::*act)());

  CoordinatorState* const state_;
  const JobConfig* const job_;
  const Start start_;
  Executor* const executor_;
  std::weak_ptr<void> owner_;
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_COORDINATOR_ASKED_ENDS_H_
