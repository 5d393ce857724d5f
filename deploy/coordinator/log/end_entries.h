// Appends the end of a generation to the run's log: END for a run that has finished, was stopped or
// has failed, and LEFT for a move without a cut. GenerationEnd decides how a generation ends,
// unless the run has finished.
//
// Nobody is told of the end before it is in the log. So this class holds back the answer to the
// member that reports that the run has finished, and the answers to members that have failed. If
// the log refuses the end, the append is tried again.
//
// Thread-safe, except that methods with REQUIRES need the state's mutex.

#ifndef SATRAP_DEPLOY_COORDINATOR_LOG_END_ENTRIES_H_
#define SATRAP_DEPLOY_COORDINATOR_LOG_END_ENTRIES_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/rpc/rpc.h"
#include "common/thread/executor.h"
#include "deploy/coordinator/ending/generation_end.h"
#include "deploy/coordinator/log/disk_tasks.h"
#include "deploy/coordinator/log/generation_log.h"
#include "deploy/coordinator/state/coordinator_state.h"
#include "proto/control.pb.h"
#include "proto/run_log.pb.h"

namespace satrap {

struct EndEntriesOptions {
  uint64_t generation = 0;
  uint64_t submission = 0;
  std::string start_cut;  // the cut that the generation began from; empty: none
  uint64_t start_step = 0;
  bool in_pods = false;
  int64_t end_period_ms = 0;  // these three as in CoordinatorTimeouts
  int64_t end_limit_ms = 0;
  int64_t left_limit_ms = 0;
  std::function<void(const std::string&)> warn;  // may be null
};

class EndEntries final : public GenerationEnd::Host {
 public:
  // Owns none of the pointers. `executor` runs timers, and `disk` the file work.
  EndEntries(CoordinatorState* state, GenerationLog* log, DiskTasks* disk, Executor* executor,
             EndEntriesOptions options)
      : state_(state), log_(log), disk_(disk), executor_(executor), options_(std::move(options)) {}

  // Sets the owner of this object. Timers that fire after `owner` is destroyed do nothing.
  // REQUIRES: called before all other methods
  void SetOwner(std::weak_ptr<void> owner) { owner_ = std::move(owner); }

  // As GenerationEnd::Host says.
  bool IsStopWished() const override REQUIRES(state_->mutex) { return state_->wishes.stops(); }
  void AddLostWork(Ending* how) const override REQUIRES(state_->mutex);
  void AppendDropped(const std::string& change, const Ending& how) override;
  void AppendEnd(RunState state, const Ending& how) override REQUIRES(state_->mutex);
  void AppendLeft(const Ending& how) override;

  // Ends the run, which has finished with this result. Answers OK once the log has this end, and
  // also once another end is decided. Answers ABORTED if the log does not take this end.
  void Finish(const RunResult& result, rpc::Callback respond) EXCLUDES(state_->mutex);
  // Holds back the answer to a member that has failed, until the run's end is in the log. REQUIRES:
  // state->end.is_linking(), and the caller holds the state's mutex
  void Hold(rpc::Callback respond);
  // Sends the answers that Hold holds back, unless the end is still being appended. Call it after
  // the end may have changed.
  void AnswerHeld() EXCLUDES(state_->mutex);
  // Tells a launcher the end if the log has not taken it in time. Call it regularly. REQUIRES: the
  // caller holds the state's mutex
  void EndWithoutLogInTime(int64_t now_us);

 private:
  void RunAppendEnd(RunState state, const Ending& how) EXCLUDES(state_->mutex);
  void RunAppendLeft(const Ending& how) EXCLUDES(state_->mutex);
  void RunFinish(const RunResult& result) EXCLUDES(state_->mutex);
  bool IsLinking() const EXCLUDES(state_->mutex);
  void After(int64_t delay_ms, std::function<void()> act);

  CoordinatorState* const state_;
  GenerationLog* const log_;
  DiskTasks* const disk_;
  Executor* const executor_;
  const EndEntriesOptions options_;
  std::weak_ptr<void> owner_;
  std::vector<rpc::Callback> finishers_ GUARDED_BY(state_->mutex);
  std::vector<rpc::Callback> failed_ GUARDED_BY(state_->mutex);
  int64_t decided_us_ GUARDED_BY(state_->mutex) = 0;   // if state->end.is_linking()
  bool is_refused_ GUARDED_BY(state_->mutex) = false;  // by the log, which is told once
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_COORDINATOR_LOG_END_ENTRIES_H_
