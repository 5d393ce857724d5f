// The coordinator's engine for one generation of a run. It knows the generation's members, whether
// the generation continues and why it ended; it commits cuts, accepts wishes, leases splits, fixes
// the list of files and keeps the rendezvous store. It serves the methods of service Coordinator
// (proto/control.proto).
//
//   STARTING --all members ready--> RUNNING --Finish--> FINISHED
//      |                              |-----a stop's cut, or its time is over--> STOPPED
//      |                              |-----a scale's cut, or a move's--> RESTARTING
//      \------------------------------\---- a loss that a restart may cure --> RESTARTING
//      \                               \--- one that it does not cure, or no restart is left
//       \                                                                        --> FAILED
//        \--one that no restart cures, in a generation whose job `satrap scale` has changed:
//           the next one has the earlier job (job_trial.h)                       --> RESTARTING
//
// FINISHED, STOPPED, RESTARTING and FAILED are final. In these states every method still answers,
// so that all members learn of the end. The run's end is in its log before anybody is told of it
// (generation_end.h). If there are several causes, the first is kept, because the later ones follow
// from it. A restart may cure the following losses: a member is lost or was started again; Fail
// with UNAVAILABLE, DEADLINE_EXCEEDED, CANCELLED, ABORTED, UNKNOWN, INTERNAL or RESOURCE_EXHAUSTED;
// an error of the run's log; another coordinator has begun a later generation; a disk hangs. If
// somebody has asked for a stop, such a loss ends in STOPPED.
//
// Commits. CommitCut checks the cut's files and appends a CUT entry to the run's log; linking the
// entry's file is the commit (run_log.h). One entry is appended at a time, and the generation does
// not end while one is being appended. An end that comes meanwhile takes effect afterwards, so
// either the commit was before the end or it is refused. Links (`latest`, `best`) are set and old
// cuts removed after the answer. If a file of the cut is damaged or cannot be read, the answer says
// so, and rank 0 abandons the cut. This loses nothing, because the work is still in the tables. The
// same happens if the entry cannot be written and certainly is not in the log (a full disk). Rank 0
// also abandons a cut if it cannot write one of the files itself. If it is not known whether the
// entry is in the log (the log's folder could not be synced), the commit is never answered and the
// generation ends; the next generation reads what the log holds.
//
// The log is compacted (RunLog::Compact) after a commit, when it has grown by `compact_after`.
//
// What the engine does about topics is in topics/run_topics.h.
//
// Everything else is in memory and ends with the generation. File work runs on `disk_executor`, one
// task at a time, never under the lock that the other calls need. A task that has not returned for
// checkpoint.limit_seconds ends the generation, even in the middle of an append, whose outcome is
// then not known; this generation ignores what the task does after that. A task that removes
// several old cuts has that time for each of them.
//
// Thread-safe. No gRPC, no threads; time is the executor's.

#ifndef SATRAP_DEPLOY_COORDINATOR_COORDINATOR_ENGINE_H_
#define SATRAP_DEPLOY_COORDINATOR_COORDINATOR_ENGINE_H_

#include <memory>

#include "common/rpc/rpc.h"
#include "deploy/coordinator/claim/generation_claim.h"
#include "deploy/coordinator/coordinator_options.h"
#include "proto/control.pb.h"

namespace satrap {

class CoordinatorEngine final : public rpc::Handler {
 public:
  // Serves the generation `claimed`, or, if the run has ended, only its end. Executors, file
  // system and kill points are not owned. They must outlive the engine; the executors may still
  // hold the engine's timers and its questions to brokers after it is destroyed. REQUIRES: all of
  // `options` are set; only kill_points and warn may be null, and also topics and topic_executor if
  // the job reads no topics
  CoordinatorEngine(ClaimedGeneration claimed, const CoordinatorOptions& options);
  ~CoordinatorEngine() override;

  // Every call except Register, Status and Wish fails with FAILED_PRECONDITION if its envelope
  // names another run, generation or job.
  //
  //   Register    FAILED_PRECONDITION: an index out of range. INVALID_ARGUMENT: no incarnation, or
  //               a program built from other sources. A process that names its holder is told
  //               to wait instead if its index or its build is wrong. See also members.h.
  //   Heartbeat   FAILED_PRECONDITION: the process has not registered. If a member leaves before
  //               training begins, it alone may be told RESTARTING, while the generation continues.
  //   FixSplits   INVALID_ARGUMENT if loaders list different files. FAILED_PRECONDITION, and the
  //               run fails, if the files give the cut's samples another order, or the topics
  //               cannot be read. UNAVAILABLE: the same loader has asked again.
  //   LeaseSplit  hands out the splits of an epoch that are not done according to the cut's ledger,
  //               in order and each once. INVALID_ARGUMENT if loaders disagree on the number of
  //               splits.
  //   CommitCut   FAILED_PRECONDITION: not RUNNING, or the cut is from another generation, or is
  //               not newer than a committed one. INVALID_ARGUMENT: not the name of a cut, or a cut
  //               after which the ranks leave although nobody has wished that. The cut is not
  //               committed after an error, nor if the answer says `abandoned` (with the reason,
  //               which names the file).
  //   StoreSet    ALREADY_EXISTS if the key has another value.
  //   StoreGet    always succeeds.
  //   Finish      OK once FINISHED is in the run's log. Also OK, without effect, once another end
  //               of the generation is decided.
  //   Fail        does nothing once the generation has ended, or if its sender is no member; such a
  //               sender is answered RESTARTING. While an entry is being appended, a member is also
  //               answered RESTARTING, because the entry may make a restart possible.
  //   Wish        FAILED_PRECONDITION, INVALID_ARGUMENT: see WishAnswer. A SCALE whose epochs or
  //               max_steps would end training is also INVALID_ARGUMENT.
  //   Status      FAILED_PRECONDITION if it asks for another run.
  void Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) override;

  void Move();  // this process leaves its machine: as for a member that says so with its heartbeat
  // Whether the generation has ended and every member that still sends heartbeats has been told.
  bool EveryoneKnowsTheEnd() const;

  // Whether a question to a broker, or a commit of offsets, has not been answered yet.
  bool AsksBroker() const;
  // Whether file work is running or waiting to run. The destructor waits for a running task, which
  // takes for ever if the disk hangs.
  bool DiskIsBusy() const;

  StatusAnswer Status() const;

 private:
  struct Rep;
  const std::shared_ptr<Rep> rep_;
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_COORDINATOR_COORDINATOR_ENGINE_H_
