// Whether a generation has ended, and how: a state machine without I/O.
//
//   STARTING --Begin--> RUNNING --> FINISHED, STOPPED, RESTARTING or FAILED
//
// The last four are final, and the first cause is kept. While an entry is being appended to the
// run's log the generation does not end, because the entry may be a cut: that gives the run its
// restarts again, and less work is lost. An end that comes meanwhile is put off until FinishAppend.
// It is then decided by what is known at that time, unless the entry itself was the end (SetEnd).
//
// A job on trial (job_trial.h) that cannot begin is dropped first: the host appends that to the
// log, and the end follows OnDropAppended. If a stop comes meanwhile, the run stops instead of
// going on with the earlier job.
//
// Not thread-safe: the coordinator's engine locks.

#ifndef SATRAP_DEPLOY_COORDINATOR_GENERATION_END_H_
#define SATRAP_DEPLOY_COORDINATOR_GENERATION_END_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "deploy/coordinator/job_trial.h"
#include "proto/control.pb.h"

namespace satrap {

// The ending if another coordinator has begun a later generation.
Ending SupersededEnding();

class GenerationEnd {
 public:
  // What this class needs from the engine.
  class Host {
   public:
    virtual ~Host() = default;
    // Whoever stops a run does not want it to begin again.
    virtual bool IsStopWished() const = 0;
    // Adds to the text what is lost if the run continues from the newest cut, and sets the loss.
    virtual void AddLostWork(Ending* how) const = 0;
    // Appends DROPPED to the run's log, and then calls OnDropAppended; not within this call.
    virtual void AppendDropped(const std::string& change, const Ending& how) = 0;
  };
  // What is known when the generation begins.
  struct Before {
    int max_restarts = 0;
    int restarts_without_cut = 0;
    std::string recent_causes;  // of those restarts
    Ending ended;               // how the generation before has failed; empty: it has not
    JobTrial trial;
  };
  // `host` is not owned.
  GenerationEnd(Before before, Host* host) : before_(std::move(before)), host_(host) {}

  RunState state() const { return state_; }
  const Ending& ending() const { return ending_; }  // of one that has ended
  const JobTrial& trial() const { return before_.trial; }
  bool has_ended() const { return state_ != STARTING && state_ != RUNNING; }
  // FAILED_PRECONDITION saying how it has ended. REQUIRES: has_ended()
  absl::Status EndedError() const;
  // The answer to a member that has failed. While an end that may fail the run is put off,
  // RESTARTING instead of FAILED, because the entry may make a restart possible.
  FailAnswer Told() const;

  // Whether it is STARTING, and its job is not being dropped. If the job is on trial, RUNNING must
  // be in the log before Begin: from then on members train, and the job may not be dropped.
  bool may_begin() const { return state_ == STARTING && !dropping_; }
  // REQUIRES: may_begin()
  void Begin() { state_ = RUNNING; }
  // A cut is committed: the run has all its restarts again.
  void OnCut() { before_.restarts_without_cut = 0; }

  // Each does nothing if the generation has ended, and is put off while an entry is appended.
  void End(RunState end, Ending how);
  void EndBy(Ending how);       // for good if no restart cures it (cause_table.h)
  void EndByLoss(Ending how);   // a loss that a restart may cure; FAILED if none is left
  void EndForGood(Ending how);  // FAILED, unless the job is on trial; then its change is dropped
  // STOPPED without a last cut; adds to the text what is lost by that.
  void EndWithoutLastCut(Ending how);

  // An entry is being appended. `what` says what becomes true by that, such as "CUT is committed";
  // empty if nobody asks. EndedError() if the generation has ended. REQUIRES: no other append is
  // under way
  absl::Status BeginAppend(std::string what);
  // False once the append has hung and the generation has ended. The next coordinator will see what
  // became of the entry.
  bool appends() const { return appending_.has_value(); }
  // Makes the entry that is being appended the generation's end. It takes precedence over an end
  // that is put off. REQUIRES: appends()
  void SetEnd(RunState end, Ending how);
  // The append has failed with `error`. Returns whether it is known that the entry is not in the
  // log (`absent`). If not, or if another coordinator was faster, the generation ends.
  bool EndUnlessKnown(const absl::Status& error, bool absent);
  // The append is over. Does nothing if appends() is false.
  void FinishAppend();
  // A file operation does not return, so this stops waiting for it.
  void OnDiskHang(const std::string& hangs);
  // The entry DROPPED with `how` has been appended, or has failed.
  void OnDropAppended(const absl::Status& status, const Ending& how);

 private:
  struct PutOffEnd {
    RunState state;  // the state that it will have, as far as is known now
    Ending how;
    void (GenerationEnd::*end)(Ending how);  // null: End
  };
  // Whether the end has to wait; then it is put off.
  bool PutOff(RunState state, const Ending& how, void (GenerationEnd::*end)(Ending));
  void TakePutOffEnd();
  void SetUncertain();

  Before before_;
  Host* const host_;
  RunState state_ = STARTING;
  Ending ending_;
  absl::optional<std::string> appending_;
  bool dropping_ = false;                  // the host appends DROPPED, or will
  absl::optional<std::string> uncertain_;  // it is not known whether this is true
  absl::optional<PutOffEnd> put_off_;
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_COORDINATOR_GENERATION_END_H_
