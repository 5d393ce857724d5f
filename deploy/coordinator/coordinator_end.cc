// The run's end: how it comes into the run's log, and who waits for that.

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/role/ending.h"
#include "deploy/coordinator/coordinator_rep.h"

namespace satrap {
namespace {

// Each attempt of a call waits, so a member that fails may wait more than once.
constexpr size_t kMostFailed = 1024;

}  // namespace

void CoordinatorEngine::Rep::AppendEnd(RunState state, const Ending& how) {
  end_decided_us = executor->NowUs();
  OnDisk([this, state, how] { RunAppendEnd(state, how); });
}

void CoordinatorEngine::Rep::RunAppendEnd(RunState state, const Ending& how) {
  {
    MutexLock lock(&mutex);
    if (!end.is_linking()) return;
  }
  RunLogEntry entry;
  entry.mutable_end()->set_state(state);
  *entry.mutable_end()->mutable_ending() = how;
  entry.mutable_end()->set_submission(submission);
  const absl::Status status = Append(entry);
  const bool absent = !status.ok() && IsAbsent(status);
  bool again = false;
  bool warns = false;
  {
    MutexLock lock(&mutex);
    again = end.OnEndAppended(status, absent);
    warns = again && !std::exchange(end_refused, true);
  }
  if (warns && options.warn) {
    options.warn(absl::StrCat("the run's log does not take its end, and is asked again: ",
                              status.message()));
  }
  AnswerFailed();
  if (!again) return;
  std::weak_ptr<Rep> weak = weak_from_this();
  executor->PostAfter(options.timeouts.end_period_ms * 1000, [weak, state, how] {
    const std::shared_ptr<Rep> rep = weak.lock();
    if (rep != nullptr)
      rep->OnDisk([rep = rep.get(), state, how] { rep->RunAppendEnd(state, how); });
  });
}

// In pods everybody waits for the log, because a process that is started again asks the log.
// Locally the launcher ends all processes, and nobody else begins anything.
void CoordinatorEngine::Rep::EndWithoutLogInTime(int64_t now_us) {
  if (options.in_pods || !end.is_linking()) return;
  if (now_us - end_decided_us < options.timeouts.end_limit_ms * 1000) return;
  end.EndWithoutLog();
}

void CoordinatorEngine::Rep::HoldFailed(rpc::Callback respond) {
  if (failers.size() >= kMostFailed) return respond(rpc::MessageOf(end.Told()));
  failers.push_back(std::move(respond));
}

void CoordinatorEngine::Rep::AnswerFailed() {
  std::vector<rpc::Callback> waiting;
  FailAnswer answer;
  {
    MutexLock lock(&mutex);
    if (end.is_linking()) return;
    waiting.swap(failers);
    answer = end.Told();
  }
  for (rpc::Callback& respond : waiting) respond(rpc::MessageOf(answer));
}

}  // namespace satrap
