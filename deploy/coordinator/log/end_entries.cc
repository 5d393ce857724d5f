#include "deploy/coordinator/log/end_entries.h"

#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/role/ending.h"
#include "common/rpc/header.h"
#include "deploy/coordinator/ending/lost_work.h"

namespace satrap {
namespace {

// How many answers to failed members are held back, which limits their memory. Each attempt of a
// call counts, so a member may count more than once. Further calls are answered at once with
// GenerationEnd::Told.
constexpr size_t kMostFailed = 1024;

}  // namespace

void EndEntries::After(int64_t delay_ms, std::function<void()> act) {
  executor_->PostAfter(delay_ms * 1000, [owner = owner_, act = std::move(act)] {
    const std::shared_ptr<void> alive = owner.lock();
    if (alive != nullptr) act();
  });
}

bool EndEntries::IsLinking() const {
  MutexLock lock(&state_->mutex);
  return state_->end.is_linking();
}

void EndEntries::AddLostWork(Ending* how) const {
  TrainedSince trained;
  if (log_->HasCommitted()) trained.own_cut = state_->last_cut;
  trained.start_cut = options_.start_cut;
  trained.start_step = options_.start_step;
  trained.step = state_->train.step();
  satrap::AddLostWork(trained, how);
}

void EndEntries::AppendDropped(const std::string& change, const Ending& how) {
  disk_->Post([this, change, how] { log_->AppendDropped(change, how); });
}

void EndEntries::AppendEnd(RunState state, const Ending& how) {
  decided_us_ = executor_->NowUs();
  disk_->Post([this, state, how] { RunAppendEnd(state, how); });
}

void EndEntries::RunAppendEnd(RunState state, const Ending& how) {
  if (!IsLinking()) return;
  RunLogEntry entry;
  entry.mutable_end()->set_state(state);
  *entry.mutable_end()->mutable_ending() = how;
  entry.mutable_end()->set_submission(options_.submission);
  const absl::Status status = log_->Append(entry);
  const bool absent = !status.ok() && log_->IsAbsent(status);
  bool again = false;
  bool warns = false;
  {
    MutexLock lock(&state_->mutex);
    again = state_->end.OnEndAppended(status, absent);
    warns = again && !std::exchange(is_refused_, true);
  }
  if (warns && options_.warn) {
    options_.warn(absl::StrCat(
        "the run's end cannot be written into its log yet; the coordinator tries again: ",
        status.message(), "; the end: ", how.text()));
  }
  AnswerHeld();
  if (!again) return;
  After(options_.end_period_ms,
        [this, state, how] { disk_->Post([this, state, how] { RunAppendEnd(state, how); }); });
}

// The process that leaves its machine may be this one, which then has little time left. If the log
// does not take the entry within left_limit_ms, the next generation counts as a restart, unless
// somebody tells its coordinator of the move.
void EndEntries::AppendLeft(const Ending& how) {
  disk_->Post([this, how] { RunAppendLeft(how); });
  After(options_.left_limit_ms, [this] {
    {
      MutexLock lock(&state_->mutex);
      state_->end.EndWithoutLog();
    }
    AnswerHeld();
  });
}

void EndEntries::RunAppendLeft(const Ending& how) {
  if (!IsLinking()) return;
  RunLogEntry entry;
  entry.mutable_left()->set_generation(options_.generation);
  *entry.mutable_left()->mutable_ended() = how;
  const absl::Status status = log_->Append(entry);
  const bool absent = !status.ok() && log_->IsAbsent(status);
  {
    MutexLock lock(&state_->mutex);
    state_->end.OnEndAppended(status, absent);
  }
  AnswerHeld();
}

void EndEntries::Finish(const RunResult& result, rpc::Callback respond) {
  {
    MutexLock lock(&state_->mutex);
    if (!state_->end.has_ended()) {
      // A repeated call waits for the entry that the first call appends.
      finishers_.push_back(std::move(respond));
      if (finishers_.size() > 1) return;
      disk_->Post([this, result] { RunFinish(result); });
      return;
    }
  }
  respond(rpc::MessageOf(FinishAnswer()));
}

void EndEntries::RunFinish(const RunResult& result) {
  bool append;
  {
    MutexLock lock(&state_->mutex);
    append = state_->end.BeginAppend("the run has finished").ok();
  }
  absl::Status status;
  if (append) {
    RunLogEntry entry;
    *entry.mutable_end()->mutable_result() = result;
    entry.mutable_end()->set_state(FINISHED);
    entry.mutable_end()->set_submission(options_.submission);
    status = log_->Append(entry);
    // After an error this generation cannot finish, even if the entry is in the log.
    if (!status.ok() && log_->EndUnlessKnown(status)) {
      MutexLock lock(&state_->mutex);
      state_->end.EndByLoss(
          EndingOf(Ending::LOG_NOT_WRITTEN, COORDINATOR, 0,
                   absl::StrCat("coordinator: the end cannot be written into the run's log: ",
                                status.message())));
    }
  }
  std::vector<rpc::Callback> waiting;
  {
    MutexLock lock(&state_->mutex);
    // If the append hung, the generation has ended meanwhile and cannot finish.
    if (state_->end.appends() && status.ok()) {
      state_->end.SetEnd(FINISHED, Ending());
      state_->result = result;
    }
    state_->end.FinishAppend();
    waiting.swap(finishers_);
  }
  for (rpc::Callback& respond : waiting) {
    if (status.ok()) {
      respond(rpc::MessageOf(FinishAnswer()));
    } else {
      respond(absl::AbortedError(status.message()));
    }
  }
}

// Does nothing in pods: there everybody waits for the log, because a process that is started again
// asks the log. Locally the launcher ends all processes, and nobody else begins a generation.
void EndEntries::EndWithoutLogInTime(int64_t now_us) {
  state_->AssertHeld();
  if (options_.in_pods || !state_->end.is_linking()) return;
  if (now_us - decided_us_ < options_.end_limit_ms * 1000) return;
  state_->end.EndWithoutLog();
}

void EndEntries::Hold(rpc::Callback respond) {
  state_->AssertHeld();
  if (failed_.size() >= kMostFailed) return respond(rpc::MessageOf(state_->end.Told()));
  failed_.push_back(std::move(respond));
}

void EndEntries::AnswerHeld() {
  std::vector<rpc::Callback> waiting;
  FailAnswer answer;
  {
    MutexLock lock(&state_->mutex);
    if (state_->end.is_linking()) return;
    waiting.swap(failed_);
    answer = state_->end.Told();
  }
  for (rpc::Callback& respond : waiting) respond(rpc::MessageOf(answer));
}

}  // namespace satrap
