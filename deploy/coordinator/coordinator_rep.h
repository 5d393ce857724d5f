// The implementation of CoordinatorEngine: the components that serve a generation, and how calls
// and time reach them. coordinator_engine.cc serves calls and time, coordinator_status.cc reports
// the status.
//
// `mutex` (state/coordinator_state.h) guards the state of the generation and is held only briefly.
// `disk` runs one task at a time, so members that only its tasks use (files, log) need no lock.

#ifndef SATRAP_DEPLOY_COORDINATOR_COORDINATOR_REP_H_
#define SATRAP_DEPLOY_COORDINATOR_COORDINATOR_REP_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/rpc/call_receiver.h"
#include "deploy/coordinator/asked_ends.h"
#include "deploy/coordinator/claim/cut_folders.h"
#include "deploy/coordinator/coordinator_engine.h"
#include "deploy/coordinator/log/cut_commits.h"
#include "deploy/coordinator/log/disk_tasks.h"
#include "deploy/coordinator/log/end_entries.h"
#include "deploy/coordinator/log/generation_log.h"
#include "deploy/coordinator/members/places.h"
#include "deploy/coordinator/rendezvous_entries.h"
#include "deploy/coordinator/run_files.h"
#include "deploy/coordinator/splits/split_leases.h"
#include "deploy/coordinator/state/coordinator_state.h"
#include "deploy/coordinator/topics/run_topics.h"

namespace satrap {

struct CoordinatorEngine::Rep : RunTopics::Host, CoordinatorState {
  Rep(ClaimedGeneration claimed, const CoordinatorOptions& options);
  // Call after a shared_ptr owns this object. Timers hold only a weak_ptr, because they may fire
  // after the engine is destroyed.
  void SetOwner(const std::weak_ptr<void>& owner);

  absl::Status CheckRun(const Envelope& call) const;
  absl::StatusOr<RegisterAnswer> Register(const RegisterRequest& request) REQUIRES(mutex);
  absl::StatusOr<HeartbeatAnswer> Heartbeat(const HeartbeatRequest& request) REQUIRES(mutex);
  absl::StatusOr<LeaseSplitAnswer> LeaseSplit(const LeaseSplitRequest& request) REQUIRES(mutex);
  absl::StatusOr<WishAnswer> Wish(const WishRequest& request) REQUIRES(mutex);
  absl::StatusOr<StatusAnswer> Status(const StatusRequest& request) REQUIRES(mutex);
  void Tick() EXCLUDES(mutex);
  void AnswerRunning(const HeartbeatRequest& request, HeartbeatAnswer* answer) REQUIRES(mutex);
  // Returns whether COMPLETE must now be appended to the log, so that the next generation learns
  // that all members were there.
  bool IsFirstComplete(int64_t now_us) REQUIRES(mutex);
  // RunCommit and TidyCuts are tasks of `disk`.
  void RunCommit(const rpc::PendingAnswer& call, const CommitCutRequest& request) EXCLUDES(mutex);
  void TidyCuts() EXCLUDES(mutex);

  // Implements RunTopics::Host.
  void OnDisk(Task task) override { disk.Post(std::move(task)); }
  absl::Status AppendTopics(const TopicsEntry& topics) override EXCLUDES(mutex);
  void EndForTopics(Ending how) override EXCLUDES(mutex);
  absl::Status EndedStatus() override EXCLUDES(mutex);

  const CoordinatorOptions options;
  const JobConfig job;
  const Envelope envelope;
  const std::string cut_folder;
  const RunPosition position;
  const LedgerState ledger;
  const std::vector<Restart> restarts;
  const uint64_t submission;
  Executor* const executor;
  rpc::CallReceiver leases_of_loaders;
  rpc::CallReceiver commits_of_rank0;
  const int64_t start_us;

  GenerationLog log;  // this and the next four: only for tasks of `disk`
  CutFolders cut_folders;
  CutCommits commits;
  RunTopics topics;
  RunFiles files;
  EndEntries ends;
  AskedEnds asked;
  int64_t next_log_us GUARDED_BY(mutex);
  Places places GUARDED_BY(mutex);
  SplitLeases leases GUARDED_BY(mutex);
  RendezvousEntries rendezvous GUARDED_BY(mutex);

  DiskTasks disk;  // the last member, so that it is destroyed first, and waits for the running task
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_COORDINATOR_COORDINATOR_REP_H_
