#include "common/rpc/answer_window.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/types/optional.h"
#include "common/base/check.h"
#include "proto/hot.pb.h"

namespace satrap::rpc {
namespace {

Message OutcomeMessage(Outcome outcome) {
  CallOutcome header;
  header.set_outcome(outcome);
  return {header.SerializeAsString(), Buffer()};
}

}  // namespace

struct AnswerWindow::Rep : std::enable_shared_from_this<AnswerWindow::Rep> {
  struct Waiter {
    int64_t until_us;
    Callback respond;
  };
  struct Call {
    absl::optional<absl::StatusOr<Message>> answer;  // none while the call runs
    std::vector<Waiter> waiters;                     // none once there is an answer
  };

  Rep(Executor* executor, int64_t hold_us, Keeping keeping)
      : executor(executor), hold_us(hold_us), keeping(keeping) {}

  // Drops the answers to calls below `oldest`, because the sender will not repeat those calls.
  // Calls that still run stay until they finish.
  void DropBelow(uint64_t oldest) REQUIRES(mutex) {
    if (oldest <= oldest_open) return;
    oldest_open = oldest;
    for (auto call = calls.begin(); call != calls.end() && call->first < oldest;) {
      call = call->second.answer.has_value() ? calls.erase(call) : std::next(call);
    }
  }

  // All attempts wait equally long, so an attempt that arrives after the timer was set expires
  // after the timer does. One timer is therefore enough: when it fires, it is set again for the
  // next attempt that expires.
  void SetTimer(int64_t delay_us) REQUIRES(mutex) {
    timer_set = true;
    executor->PostAfter(delay_us, [weak = weak_from_this()] {
      if (const auto rep = weak.lock()) rep->AnswerWait();
    });
  }

  // Answers WAIT to the attempts that have waited for hold_us.
  void AnswerWait() {
    std::vector<Callback> expired;
    {
      MutexLock lock(&mutex);
      timer_set = false;
      const int64_t now_us = executor->NowUs();
      int64_t next_us = std::numeric_limits<int64_t>::max();
      for (auto& [number, call] : calls) {
        auto keep = call.waiters.begin();
        for (Waiter& waiter : call.waiters) {
          if (waiter.until_us <= now_us) {
            expired.push_back(std::move(waiter.respond));
          } else {
            next_us = std::min(next_us, waiter.until_us);
            if (&waiter != &*keep) *keep = std::move(waiter);
            ++keep;
          }
        }
        call.waiters.erase(keep, call.waiters.end());
      }
      if (next_us != std::numeric_limits<int64_t>::max()) SetTimer(next_us - now_us);
    }
    for (Callback& respond : expired) respond(OutcomeMessage(OUTCOME_WAIT));
  }

  Executor* const executor;
  const int64_t hold_us;
  const Keeping keeping;
  mutable Mutex mutex;
  uint64_t oldest_open GUARDED_BY(mutex) = 1;
  // The answered calls from oldest_open on, and all calls that still run.
  absl::btree_map<uint64_t, Call> calls GUARDED_BY(mutex);
  bool timer_set GUARDED_BY(mutex) = false;
};

AnswerWindow::AnswerWindow(Executor* executor, int64_t hold_us, Keeping keeping)
    : rep_(std::make_shared<Rep>(executor, hold_us, keeping)) {}

AnswerWindow::~AnswerWindow() {
  // The responders must be destroyed with the window, but a timer's task may keep the rep alive for
  // a moment longer. So the responders are moved here. They are destroyed after the lock is
  // released, because destroying a responder may answer its call.
  absl::btree_map<uint64_t, Rep::Call> calls;
  MutexLock lock(&rep_->mutex);
  calls.swap(rep_->calls);
}

Admission AnswerWindow::Admit(uint64_t number, uint64_t oldest_open, Callback respond,
                              bool without_payload) {
  if (number == 0) {
    respond(absl::InvalidArgumentError("call has no number"));
    return Admission::kHandled;
  }
  absl::StatusOr<Message> answer;
  {
    MutexLock lock(&rep_->mutex);
    rep_->DropBelow(oldest_open);
    if (number < rep_->oldest_open) {
      answer = OutcomeMessage(OUTCOME_OLD);
    } else if (without_payload && rep_->calls.count(number) == 0) {
      answer = OutcomeMessage(OUTCOME_RESEND);
    } else {
      const auto [call, is_new] = rep_->calls.try_emplace(number);
      if (!call->second.answer.has_value()) {
        call->second.waiters.push_back(
            {rep_->executor->NowUs() + rep_->hold_us, std::move(respond)});
        if (!rep_->timer_set) rep_->SetTimer(rep_->hold_us);
        return is_new ? Admission::kRun : Admission::kHandled;
      }
      if (rep_->keeping == Keeping::kUntilDelivered) {
        answer = *std::move(call->second.answer);
        rep_->calls.erase(call);
      } else {
        answer = *call->second.answer;
      }
    }
  }
  respond(std::move(answer));
  return Admission::kHandled;
}

void AnswerWindow::Finish(uint64_t number, absl::StatusOr<Message> answer) {
  std::vector<Rep::Waiter> waiters;
  {
    MutexLock lock(&rep_->mutex);
    const auto call = rep_->calls.find(number);
    CHECK(call != rep_->calls.end() && !call->second.answer.has_value())
        << "call " << number << " does not run";
    waiters.swap(call->second.waiters);
    // If the sender closed the number while the call ran, no attempt follows, and the answer is
    // dropped. If no attempt is waiting for the answer (all were answered WAIT), it is kept for the
    // next attempt, whatever `keeping` says.
    const bool delivered = rep_->keeping == Keeping::kUntilDelivered && !waiters.empty();
    if (number < rep_->oldest_open || delivered) {
      rep_->calls.erase(call);
    } else {
      call->second.answer = answer;
    }
  }
  for (Rep::Waiter& waiter : waiters) waiter.respond(answer);
}

size_t AnswerWindow::num_kept() const {
  MutexLock lock(&rep_->mutex);
  return std::count_if(rep_->calls.begin(), rep_->calls.end(),
                       [](const auto& call) { return call.second.answer.has_value(); });
}

size_t AnswerWindow::num_running() const {
  MutexLock lock(&rep_->mutex);
  return std::count_if(rep_->calls.begin(), rep_->calls.end(),
                       [](const auto& call) { return !call.second.answer.has_value(); });
}

AnswerWindows::AnswerWindows(Executor* executor, int64_t hold_us, Keeping keeping)
    : executor_(executor), hold_us_(hold_us), keeping_(keeping) {}

AnswerWindow* AnswerWindows::Get(uint32_t sender, int stream) {
  MutexLock lock(&mutex_);
  std::unique_ptr<AnswerWindow>& window = windows_[{sender, stream}];
  if (window == nullptr) window = std::make_unique<AnswerWindow>(executor_, hold_us_, keeping_);
  return window.get();
}

}  // namespace satrap::rpc
