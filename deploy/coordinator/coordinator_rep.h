// The implementation of CoordinatorEngine. coordinator_engine.cc works in memory,
// coordinator_disk.cc and coordinator_log.cc work on the disk executor, coordinator_end.cc writes
// the run's end, coordinator_move.cc lets processes go elsewhere, coordinator_places.cc gives them
// places, coordinator_status.cc reports the status, and coordinator_hosts.cc serves GenerationEnd,
// CutCommits and RunTopics.
//
// `mutex` (coordinator_state.h) guards the state of the generation and is held only briefly. `disk`
// runs one task at a time, so members that only its tasks use (files, log) need no lock.

#ifndef SATRAP_DEPLOY_COORDINATOR_COORDINATOR_REP_H_
#define SATRAP_DEPLOY_COORDINATOR_COORDINATOR_REP_H_

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "common/rpc/call_receiver.h"
#include "common/rpc/header.h"
#include "common/thread/serial_executor.h"
#include "deploy/coordinator/attendance.h"
#include "deploy/coordinator/claim/cut_folders.h"
#include "deploy/coordinator/coordinator_engine.h"
#include "deploy/coordinator/coordinator_state.h"
#include "deploy/coordinator/cut_commits.h"
#include "deploy/coordinator/members.h"
#include "deploy/coordinator/splits/split_leases.h"
#include "deploy/coordinator/topics/run_topics.h"
#include "deploy/coordinator/waiting_processes.h"

namespace satrap {

inline constexpr int64_t kTickUs = 500 * 1000;

struct CoordinatorEngine::Rep : std::enable_shared_from_this<Rep>,
                                GenerationEnd::Host,
                                CutCommits::Host,
                                RunTopics::Host,
                                CoordinatorState {
  Rep(ClaimedGeneration claimed, const CoordinatorOptions& options);

  // These methods work in memory.
  absl::StatusOr<RegisterAnswer> Register(const RegisterRequest& request) REQUIRES(mutex);
  absl::StatusOr<HeartbeatAnswer> Heartbeat(const HeartbeatRequest& request) REQUIRES(mutex);
  absl::StatusOr<LeaseSplitAnswer> LeaseSplit(const LeaseSplitRequest& request) REQUIRES(mutex);
  absl::StatusOr<StoreSetAnswer> StoreSet(const StoreSetRequest& request) REQUIRES(mutex);
  absl::StatusOr<StoreGetAnswer> StoreGet(const StoreGetRequest& request) REQUIRES(mutex);
  // `*stranger` becomes a text for the log if the failure is of no member, and is not obeyed.
  absl::StatusOr<FailAnswer> Fail(const FailRequest& request, std::string* stranger)
      REQUIRES(mutex);
  // Why a process with a holder must wait whatever its index is; empty: it need not.
  std::string WhyWait(const RegisterRequest& request) const REQUIRES(mutex);
  // The time for which this process has stood still since its last tick.
  int64_t StallUs(int64_t now_us) const REQUIRES(mutex);
  int64_t AwakeUs() const REQUIRES(mutex) {
    const int64_t now_us = executor->NowUs();
    return now_us - StallUs(now_us);
  }
  // Whether a place may be taken by another process without ending the generation. A launcher
  // replaces nobody within a generation.
  bool MayReplace() const REQUIRES(mutex) { return options.in_pods && end.may_begin() && !begins; }
  absl::StatusOr<WishAnswer> Wish(const WishRequest& request) REQUIRES(mutex);
  absl::StatusOr<StatusAnswer> Status(const StatusRequest& request) REQUIRES(mutex);
  absl::Status CheckRun(const Envelope& call) const;
  void EstimateSamples(TrainProgress* progress) const REQUIRES(mutex);
  void Tick() EXCLUDES(mutex);
  void StopInTime() EXCLUDES(mutex);
  bool takes_cuts() const REQUIRES(mutex) {
    return job.action() == JobConfig::TRAIN && !training_is_over;
  }
  // A member says that it goes elsewhere. Returns the answer if it may go at once.
  absl::optional<HeartbeatAnswer> Leave(const HeartbeatRequest& request) REQUIRES(mutex);
  void Move(const Ending& how) REQUIRES(mutex);
  void MoveInTime() EXCLUDES(mutex);
  void OnSilent(Ending lost, int64_t now_us) REQUIRES(mutex);
  void HoldFailed(rpc::Callback respond) REQUIRES(mutex);
  void AnswerFailed() EXCLUDES(mutex);
  void EndWithoutLogInTime(int64_t now_us) REQUIRES(mutex);
  // Call before a place becomes free, too.
  void EndIfOverdue(int64_t now_us) REQUIRES(mutex);
  void SayIfComplete(int64_t now_us) REQUIRES(mutex);
  bool HasCommitted() const REQUIRES(mutex) {  // a cut of this generation
    return last_cut.has_value() && last_cut->generation() == envelope.generation();
  }
  void NoteAttendance(int64_t now_us) REQUIRES(mutex) {
    attendance.Note(members.Unheard().empty(), now_us);
  }

  // Implements GenerationEnd::Host.
  bool IsStopWished() const override REQUIRES(mutex) { return wishes.stops(); }
  void AddLostWork(Ending* how) const override REQUIRES(mutex);
  void AppendDropped(const std::string& change, const Ending& how) override;
  void AppendEnd(RunState state, const Ending& how) override REQUIRES(mutex);
  void AppendLeft(const Ending& how) override REQUIRES(mutex);
  // Implements CutCommits::Host.
  absl::Status Append(RunLogEntry entry) override EXCLUDES(mutex);
  bool IsAbsent(const absl::Status& status) const override;
  // Implements RunTopics::Host.
  absl::Status AppendTopics(const TopicsEntry& topics) override EXCLUDES(mutex);
  void EndForTopics(Ending how) override EXCLUDES(mutex);
  absl::Status EndedStatus() override EXCLUDES(mutex);

  // The timer's tick calls EndIfDiskHangs, and Finish posts a task itself; the other methods run in
  // tasks of OnDisk. OnDisk may be called while `mutex` is held.
  void OnDisk(Task task) override;
  void RestartHangClock() EXCLUDES(mutex);  // restarts the limit for the running task
  void EndIfDiskHangs(int64_t now_us, int64_t stall_us) REQUIRES(mutex);
  void RunCommit(const rpc::PendingAnswer& call, const CommitCutRequest& request) EXCLUDES(mutex);
  void RunAppendDropped(const std::string& change, const Ending& how) EXCLUDES(mutex);
  void RunAppendEnd(RunState state, const Ending& how) EXCLUDES(mutex);
  void RunAppendLeft(const Ending& how) EXCLUDES(mutex);
  void AppendRunningAndBegin() EXCLUDES(mutex);
  void AppendComplete() EXCLUDES(mutex);
  void CompactLog() EXCLUDES(mutex);
  bool EndUnlessKnown(const absl::Status& status) EXCLUDES(mutex);
  void FinishAppend() EXCLUDES(mutex);
  void TidyCuts() EXCLUDES(mutex);
  void Finish(const FinishRequest& request, rpc::Callback respond) EXCLUDES(mutex);
  void RunFinish(const RunResult& result) EXCLUDES(mutex);
  void RunFixSplits(const FixSplitsRequest& request, rpc::Callback respond) EXCLUDES(mutex);
  absl::StatusOr<SplitList> FixSplits(const FixSplitsRequest& request) EXCLUDES(mutex);
  void LookForOtherCoordinators() EXCLUDES(mutex);

  const CoordinatorOptions options;
  const JobConfig job;
  const Envelope envelope;
  const std::string cut_folder;
  const RunPosition position;
  const LedgerState ledger;
  const absl::optional<uint64_t> cut_order_fingerprint;
  const std::vector<Restart> restarts;
  const bool nothing_lost_before;  // as NothingWasLostBefore says
  const uint64_t submission;
  Executor* const executor;
  rpc::CallReceiver leases_of_loaders;
  rpc::CallReceiver commits_of_rank0;
  const int64_t start_us;

  RunLog log;         // this and the next six: only for tasks of `disk`
  size_t compact_at;  // compact when the log has this number
  CutFolders cut_folders;
  CutCommits commits;
  absl::optional<SplitList> splits;
  absl::optional<FixSplitsRequest> first_splits;  // the first loader's own list
  RunTopics topics;
  std::atomic<int> disk_tasks = 0;  // posted and not over; no lock, because OnDisk may be under it
  int64_t last_tick_us GUARDED_BY(mutex);
  int64_t next_log_us GUARDED_BY(mutex);
  Attendance attendance GUARDED_BY(mutex);
  Members members GUARDED_BY(mutex);
  WaitingProcesses waiting GUARDED_BY(mutex);
  SplitLeases leases GUARDED_BY(mutex);

  // The last member, so that it is destroyed first. Its destructor waits for the running task.
  SerialExecutor disk;
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_COORDINATOR_COORDINATOR_REP_H_
