// The inside of CoordinatorEngine: coordinator_engine.cc works in memory, coordinator_end.cc ends
// the generation, coordinator_disk.cc and coordinator_log.cc work on the disk executor,
// coordinator_status.cc tells the status, coordinator_topics.cc serves RunTopics.
//
// `mutex` (coordinator_state.h) guards the state of the generation and is held for moments. `disk`
// runs one task at a time, so what only its tasks use (files, log) needs no lock.

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
#include "deploy/coordinator/coordinator_engine.h"
#include "deploy/coordinator/coordinator_state.h"
#include "deploy/coordinator/cut_folders.h"
#include "deploy/coordinator/job_trial.h"
#include "deploy/coordinator/members.h"
#include "deploy/coordinator/run_topics.h"
#include "deploy/coordinator/split_leases.h"

namespace satrap {

// Another coordinator has begun a later generation.
Ending SupersededEnding();

struct CoordinatorEngine::Rep : std::enable_shared_from_this<Rep>,
                                RunTopics::Host,
                                CoordinatorState {
  Rep(ClaimedGeneration claimed, const CoordinatorOptions& options);

  // In memory.
  absl::StatusOr<RegisterAnswer> Register(const RegisterRequest& request) REQUIRES(mutex);
  absl::StatusOr<HeartbeatAnswer> Heartbeat(const HeartbeatRequest& request) REQUIRES(mutex);
  absl::StatusOr<LeaseSplitAnswer> LeaseSplit(const LeaseSplitRequest& request) REQUIRES(mutex);
  absl::StatusOr<StoreSetAnswer> StoreSet(const StoreSetRequest& request) REQUIRES(mutex);
  absl::StatusOr<StoreGetAnswer> StoreGet(const StoreGetRequest& request) REQUIRES(mutex);
  absl::StatusOr<FailAnswer> Fail(const FailRequest& request) REQUIRES(mutex);
  absl::StatusOr<WishAnswer> Wish(const WishRequest& request) REQUIRES(mutex);
  absl::StatusOr<StatusAnswer> Status(const StatusRequest& request) REQUIRES(mutex);
  absl::Status CheckRun(const Envelope& call) const;
  void EstimateSamples(TrainProgress* progress) const REQUIRES(mutex);
  void Tick() EXCLUDES(mutex);
  void StopInTime() EXCLUDES(mutex);

  // The end. Each does nothing if the generation has ended; while an entry is appended it is put
  // off until that is done, because the entry may be a cut: it gives the run its restarts again,
  // and less work is lost.
  bool Ended() const REQUIRES(mutex) { return state != STARTING && state != RUNNING; }
  void End(RunState end, Ending how) REQUIRES(mutex);
  void EndBy(Ending how) REQUIRES(mutex);  // for good if no restart cures it (cause_table.h)
  void EndGeneration(Ending how) REQUIRES(mutex);  // by a loss that a restart may cure
  // By what no restart cures. Where the job is on trial (job_trial.h), its change is dropped.
  void EndForGood(Ending how) REQUIRES(mutex);
  // As STOPPED without a last cut; what is lost by that is told after the text.
  void EndWithoutLastCut(Ending how) REQUIRES(mutex);
  // Adds to the text what is lost by going on from the newest cut, and sets the loss.
  void AddLostWork(Ending* how) const REQUIRES(mutex);
  // FAILED_PRECONDITION saying how the generation has ended.
  absl::Status EndedError() const REQUIRES(mutex);
  absl::Status AppendTopics(const TopicsEntry& topics) override EXCLUDES(mutex);
  void EndForTopics(Ending how) override EXCLUDES(mutex);
  absl::Status EndedStatus() override EXCLUDES(mutex);

  // All but Finish, which posts it, run in tasks of OnDisk. That may be called under `mutex`.
  void OnDisk(Task task) override;
  void RestartHangClock() EXCLUDES(mutex);  // for the running task
  void EndIfDiskHangs(int64_t now_us, int64_t stall_us) REQUIRES(mutex);
  void RunCommit(const rpc::PendingAnswer& call, const CommitCutRequest& request) EXCLUDES(mutex);
  absl::StatusOr<CutEntry> CheckCommit(const CommitCutRequest& request) EXCLUDES(mutex);
  bool IsNewer(const std::string& cut) const;
  absl::Status BeginAppend(const CommitCutRequest& request) EXCLUDES(mutex);
  absl::optional<absl::StatusOr<CommitCutAnswer>> AppendCut(const CommitCutRequest& request,
                                                            const CutEntry& cut) EXCLUDES(mutex);
  void OnCutAppended(const CommitCutRequest& request, const RunLogEntry& entry) REQUIRES(mutex);
  void AppendScale() EXCLUDES(mutex);
  void FinishAppend() REQUIRES(mutex);
  void TakePutOffEnd() REQUIRES(mutex);
  void AppendRunning() EXCLUDES(mutex);
  void AppendDropped(const Ending& how) EXCLUDES(mutex);
  void CompactLog() EXCLUDES(mutex);
  absl::Status Append(RunLogEntry entry) EXCLUDES(mutex);
  bool IsAbsent(const absl::Status& status) const;
  bool EndUnlessKnown(const absl::Status& status) EXCLUDES(mutex);
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
  const std::string recent_causes;
  const bool nothing_lost_before;  // known of the generations before
  const Ending ended_before;       // the one before, if it has failed
  const JobTrial trial;
  Executor* const executor;
  rpc::CallReceiver leases_of_loaders;
  rpc::CallReceiver commits_of_rank0;
  const int64_t start_us;

  RunLog log;         // this and the next five: used by tasks of `disk` alone
  size_t compact_at;  // when the log has this number
  CutFolders cut_folders;
  absl::optional<SplitList> splits;
  absl::optional<FixSplitsRequest> first_splits;  // the first loader's own list
  RunTopics topics;
  std::atomic<int> disk_tasks = 0;  // posted and not over; no lock, because OnDisk may be under it
  int64_t last_tick_us GUARDED_BY(mutex);
  int64_t next_log_us GUARDED_BY(mutex);
  struct PutOffEnd {
    RunState state;  // that it will have, as far as is known now
    Ending how;
    void (Rep::*end)(Ending how);  // null: End
  };
  // Whether an entry is being appended; then the end is put off, and true is returned.
  bool PutOff(RunState state, const Ending& how, void (Rep::*end)(Ending)) REQUIRES(mutex);
  absl::optional<PutOffEnd> put_off GUARDED_BY(mutex);  // until both are over
  int restarts_without_cut GUARDED_BY(mutex);
  Members members GUARDED_BY(mutex);
  SplitLeases leases GUARDED_BY(mutex);
  bool training_is_over GUARDED_BY(mutex);  // its last cut is committed

  // Last, so that it is destroyed first and waits for its running task.
  SerialExecutor disk;
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_COORDINATOR_COORDINATOR_REP_H_
