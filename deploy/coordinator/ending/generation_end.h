// Decides whether and how a generation ends: a state machine without I/O.
//
//   STARTING --Begin--> RUNNING --> FINISHED, STOPPED, RESTARTING or FAILED
//
// The last four states are final, and the first cause is kept. Nobody is told of STOPPED or FAILED
// before the end is in the run's log: the host appends it, and OnEndAppended then sets the state.
// Until then nothing else is appended, and no other end takes its place. If the log does not take
// the end, only a launcher is told of it nevertheless (EndWithoutLog). SetEnd sets FINISHED. A move
// without a cut (EndMoved) is appended in the same way, but members are told of it whether or not
// the log takes it.
//
// The generation does not end while an entry is being appended to the run's log. The entry may be a
// cut, which gives the run its restarts back and saves work. An end that comes meanwhile is put off
// until FinishAppend. Unless the entry itself was the end (SetEnd), FinishAppend decides anew how
// the generation ends, by what is known then.
//
// A job on trial (job_trial.h) that cannot begin is dropped first: the host appends DROPPED to the
// log, and the generation ends after OnDropAppended. If a stop comes meanwhile, the run stops
// instead of continuing with the earlier job.
//
// Not thread-safe: the lock of the coordinator's engine guards it.

#ifndef SATRAP_DEPLOY_COORDINATOR_ENDING_GENERATION_END_H_
#define SATRAP_DEPLOY_COORDINATOR_ENDING_GENERATION_END_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "deploy/coordinator/ending/job_trial.h"
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
    // Likewise appends END, and calls OnEndAppended.
    virtual void AppendEnd(RunState end, const Ending& how) = 0;
    // Likewise appends LEFT. Calls EndWithoutLog if the log does not take the entry in good time.
    virtual void AppendLeft(const Ending& how) = 0;
  };
  // What is known when the generation begins.
  struct Before {
    int max_restarts = 0;
    int restarts_without_cut = 0;
    std::string recent_causes;  // the causes of those restarts
    Ending ended;               // how the previous generation failed; empty: it did not
    JobTrial trial;
    bool in_pods = false;  // else a launcher waits, who is told of an end that no log takes
  };
  // `host` is not owned. REQUIRES: it is given here, or by SetHost before anything else
  explicit GenerationEnd(Before before, Host* host = nullptr)
      : before_(std::move(before)), host_(host) {}
  void SetHost(Host* host) { host_ = host; }

  RunState state() const { return state_; }
  const Ending& ending() const { return ending_; }  // empty before has_ended()
  const JobTrial& trial() const { return before_.trial; }
  bool has_ended() const { return state_ != STARTING && state_ != RUNNING; }
  // Whether the generation's end is decided and is now being appended to the log.
  bool is_linking() const { return linking_.has_value(); }
  // How the run ends, if that is decided but not in its log yet; else null.
  const Ending* ending_due() const {
    return is_linking() && linking_->state != RESTARTING ? &linking_->how : nullptr;
  }
  // FAILED_PRECONDITION; the message says how the generation has ended, or is about to end.
  // REQUIRES: has_ended() or is_linking()
  absl::Status EndedError() const;
  // The answer to a member that has failed. If an end is put off, or is not in the log yet, the
  // answer says RESTARTING, because the entry being appended may make a restart possible.
  FailAnswer Told() const;

  // Whether the state is STARTING, the job is not being dropped and the run does not end. If the
  // job is on trial, RUNNING must be in the log before Begin is called: from then on members train,
  // and the job must not be dropped.
  bool may_begin() const { return state_ == STARTING && !dropping_ && !is_linking(); }
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
  // Ends as RESTARTING for a move (a process leaves its machine) that no cut in the log records.
  void EndMoved(Ending how);
  // EndWithoutLastCut ends the generation as STOPPED; EndMoveWithoutCut calls EndMoved. Both add to
  // the text of `how` what is lost because there is no last cut.
  void EndWithoutLastCut(Ending how);
  void EndMoveWithoutCut(Ending how);
  void EndSuperseded();                         // another coordinator has begun a later generation
  void TakeRecorded(RunState end, Ending how);  // the log has had it since before the generation

  // Call before an entry is appended. `what` says what the entry makes true, such as "CUT is
  // committed"; empty if nobody needs to know. Returns EndedError() if the generation has ended, or
  // its end is being appended. REQUIRES: no other append is under way
  absl::Status BeginAppend(std::string what);
  // Whether an append is under way. False once an append has hung and ended the generation; the
  // next coordinator will see whether the entry is in the log.
  bool appends() const { return appending_.has_value(); }
  // Declares that the entry being appended is the generation's end. That end takes precedence over
  // an end that was put off. REQUIRES: appends()
  void SetEnd(RunState end, Ending how);
  // Declares that the run ends with the entry being appended, and that END follows in an entry of
  // its own. That end also takes precedence over an end that was put off. REQUIRES: appends()
  void SetRunEnd(RunState end, Ending how);
  // Call when the append has failed with `error`. `absent` says that the entry certainly is not in
  // the log. Ends the generation if the entry may be in the log, or if another coordinator was
  // faster. Returns `absent`.
  bool EndUnlessKnown(const absl::Status& error, bool absent);
  // Call when the append is over. Does nothing if appends() is false.
  void FinishAppend();
  // Call when a file operation does not return: stops waiting for it.
  void OnDiskHang(const std::string& hangs);
  // Call when the append of the entry DROPPED, with `how`, has succeeded or failed.
  void OnDropAppended(const absl::Status& status, const Ending& how);
  // Call when the append of the entry END or LEFT has succeeded or failed. `absent` says that the
  // entry certainly is not in the log. Returns whether it has to be appended once more.
  bool OnEndAppended(const absl::Status& status, bool absent);
  // Ends the generation although the log has not taken its end. Does nothing if is_linking() is
  // false.
  void EndWithoutLog();

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
  void Set(RunState end, Ending how);
  // Leaves it to the next coordinator to find out whether the log has the run's end.
  void LeaveEndToNext(const std::string& why, const Ending& how);

  Before before_;
  Host* host_;
  RunState state_ = STARTING;
  Ending ending_;
  absl::optional<std::string> appending_;
  bool dropping_ = false;                  // the host is appending DROPPED, or will
  absl::optional<std::string> uncertain_;  // a text of which it is not known whether it is true
  absl::optional<PutOffEnd> put_off_;
  absl::optional<PutOffEnd> linking_;  // the end that the host appends
  bool disk_hangs_ = false;
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_COORDINATOR_ENDING_GENERATION_END_H_
