// How the run's end, or a move without a cut, comes into the run's log, and who waits for that.

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/role/ending.h"
#include "deploy/coordinator/coordinator_rep.h"

namespace satrap {
namespace {

// Each attempt of a call waits, so a member that fails may wait more than once. This bounds the
// memory for them; who comes later is told at once what GenerationEnd::Told says.
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
                              status.message(), "; the end: ", how.text()));
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

// The process that goes elsewhere may be this one, which then has little time left. If the log does
// not take the entry within it, the next generation counts as a restart unless somebody tells its
// coordinator.
void CoordinatorEngine::Rep::AppendLeft(const Ending& how) {
  OnDisk([this, how] { RunAppendLeft(how); });
  std::weak_ptr<Rep> weak = weak_from_this();
  executor->PostAfter(options.timeouts.left_limit_ms * 1000, [weak] {
    const std::shared_ptr<Rep> rep = weak.lock();
    if (rep == nullptr) return;
    {
      MutexLock lock(&rep->mutex);
      rep->end.EndWithoutLog();
    }
    rep->AnswerFailed();
  });
}

void CoordinatorEngine::Rep::RunAppendLeft(const Ending& how) {
  {
    MutexLock lock(&mutex);
    if (!end.is_linking()) return;
  }
  RunLogEntry entry;
  entry.mutable_left()->set_generation(envelope.generation());
  *entry.mutable_left()->mutable_ended() = how;
  const absl::Status status = Append(entry);
  const bool absent = !status.ok() && IsAbsent(status);
  {
    MutexLock lock(&mutex);
    end.OnEndAppended(status, absent);
  }
  AnswerFailed();
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
