// Decides whether and how a generation ends: a state machine without I/O.
//
//   STARTING --Begin--> RUNNING --> FINISHED, STOPPED, RESTARTING or FAILED
//
// The last four states are final, and the first cause is kept. The generation does not end while an
// entry is being appended to the run's log. The entry may be a cut, which gives the run its
// restarts back, and then less work is lost. An end that comes meanwhile is put off until
// FinishAppend. Unless the entry itself was the end (SetEnd), FinishAppend decides anew how the
// generation ends, by what is known then.
//
// A job on trial (job_trial.h) that cannot begin is dropped first: the host appends DROPPED to the
// log, and the generation ends after OnDropAppended. If a stop comes meanwhile, the run stops
// instead of continuing with the earlier job.
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
  // The services that this class needs from the engine.
  class Host {
   public:
    virtual ~Host() = default;
    // Whether somebody has asked for a stop. If so, the run must not begin again.
    virtual bool IsStopWished() const = 0;
    // Appends to the text of `how` what is lost if the run continues from the newest cut, and sets
    // its `loss`.
    virtual void AddLostWork(Ending* how) const = 0;
    // Starts to append DROPPED to the run's log. Calls OnDropAppended when that is done, but not
    // from within this call.
    virtual void AppendDropped(const std::string& change, const Ending& how) = 0;
  };
  // What is known when the generation begins.
  struct Before {
    int max_restarts = 0;
    int restarts_without_cut = 0;
    std::string recent_causes;  // the causes of those restarts
    Ending ended;               // how the previous generation failed; empty: it did not
    JobTrial trial;
  };
  // `host` is not owned.
  GenerationEnd(Before before, Host* host) : before_(std::move(before)), host_(host) {}

  RunState state() const { return state_; }
  const Ending& ending() const { return ending_; }  // empty before has_ended()
  const JobTrial& trial() const { return before_.trial; }
  bool has_ended() const { return state_ != STARTING && state_ != RUNNING; }
  // FAILED_PRECONDITION; the message says how the generation has ended. REQUIRES: has_ended()
  absl::Status EndedError() const;
  // The answer to a member that has failed. If an end that may fail the run is put off, the answer
  // says RESTARTING, not FAILED, because the entry being appended may make a restart possible.
  FailAnswer Told() const;

  // Whether the state is STARTING and the job is not being dropped. If the job is on trial, RUNNING
  // must be in the log before Begin is called: from then on members train, and the job must not be
  // dropped.
  bool may_begin() const { return state_ == STARTING && !dropping_; }
  // REQUIRES: may_begin()
  void Begin() { state_ = RUNNING; }
  // Call when a cut is committed: the run has all its restarts again.
  void OnCut() { before_.restarts_without_cut = 0; }

  // These methods do nothing if the generation has ended. While an entry is being appended, they
  // put the end off.
  void End(RunState end, Ending how);
  void EndBy(Ending how);       // for good if no restart cures it (cause_table.h)
  void EndByLoss(Ending how);   // a loss that a restart may cure; FAILED if none is left
  void EndForGood(Ending how);  // FAILED, unless the job is on trial; then its change is dropped
  // Ends as STOPPED without a last cut, and adds to the text of `how` what is lost because of that.
  void EndWithoutLastCut(Ending how);

  // Call before an entry is appended. `what` says what the entry makes true, such as "CUT is
  // committed"; empty if it is of no interest. EndedError() if the generation has ended. REQUIRES:
  // no other append is under way
  absl::Status BeginAppend(std::string what);
  // Whether an append is under way. False once an append has hung and ended the generation; the
  // next coordinator will see whether the entry is in the log.
  bool appends() const { return appending_.has_value(); }
  // Makes the entry that is being appended the generation's end, which takes precedence over an end
  // that is put off. REQUIRES: appends()
  void SetEnd(RunState end, Ending how);
  // Call when the append has failed with `error`. `absent` says that the entry certainly is not in
  // the log. Ends the generation if the entry may be in the log, or if another coordinator was
  // faster. Returns `absent`.
  bool EndUnlessKnown(const absl::Status& error, bool absent);
  // Call when the append is over. Does nothing if appends() is false.
  void FinishAppend();
  // Call when a file operation does not return: stops waiting for it.
  void OnDiskHang(const std::string& hangs);
  // Call when appending the entry DROPPED with `how` has succeeded or failed.
  void OnDropAppended(const absl::Status& status, const Ending& how);

 private:
  struct PutOffEnd {
    RunState state;  // the final state, as far as is known now
    Ending how;
    void (GenerationEnd::*end)(Ending how);  // null: End
  };
  // Returns whether the end must wait, and if so, puts it off.
  bool PutOff(RunState state, const Ending& how, void (GenerationEnd::*end)(Ending));
  void TakePutOffEnd();
  void SetUncertain();

  Before before_;
  Host* const host_;
  RunState state_ = STARTING;
  Ending ending_;
  absl::optional<std::string> appending_;
  bool dropping_ = false;                  // the host is about to append DROPPED
  absl::optional<std::string> uncertain_;  // a text of which it is not known whether it is true
  absl::optional<PutOffEnd> put_off_;
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_COORDINATOR_GENERATION_END_H_
