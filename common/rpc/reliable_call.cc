#include "common/rpc/reliable_call.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "common/rpc/lost_call.h"
#include "common/rpc/sign_of_life.h"

namespace satrap::rpc {
namespace {

constexpr int64_t kFirstPauseUs = 20 * 1000;
constexpr int64_t kLongestPauseUs = 1000 * 1000;
// On a busy machine a timer is late by milliseconds. If it is late by more than this, the process
// was suspended.
constexpr int64_t kUsualLatenessUs = 1000 * 1000;
// The limit for the timeout of one attempt, even if transfers are slow. The TransferMs of the
// attempt's payload is added to this limit. gRPC's keepalive detects a dead connection.
constexpr int64_t kLongestAttemptMs = 600 * 1000;

}  // namespace

ReliableCall::ReliableCall(Executor* executor, Channel* channel, const Method& method,
                           const RpcTimeouts& timeouts, RequestMaker make_request, Callback done)
    : executor_(executor),
      channel_(channel),
      method_(method),
      timeouts_(timeouts),
      make_request_(std::move(make_request)),
      done_(std::move(done)),
      attempt_timeout_ms_(timeouts.attempt_timeout_ms),
      due_us_(executor->NowUs()),
      last_sign_us_(due_us_),
      pause_us_(kFirstPauseUs) {}

void ReliableCall::Start() {
  MakeAttempt();
  MutexLock lock(&mutex_);
  starting_ = false;
}

void ReliableCall::Cancel() {
  Callback done;
  {
    MutexLock lock(&mutex_);
    if (done_ == nullptr) return;
    done = std::exchange(done_, nullptr);
  }
  PostDone(std::move(done), absl::CancelledError("call was cancelled"));
}

void ReliableCall::MakeAttempt() {
  bool with_payload;
  {
    MutexLock lock(&mutex_);
    if (done_ == nullptr) return;
    with_payload = !receiver_has_payload_;
  }
  // Called without holding mutex_, because the function may take locks of its owner. No other
  // attempt is made meanwhile.
  Message request = make_request_(with_payload);
  int64_t attempt;
  int64_t timeout_ms;
  {
    MutexLock lock(&mutex_);
    DiscountStandstill(due_us_);  // of the pause before this attempt
    attempt = attempt_;
    attempt_has_payload_ = with_payload;
    timeout_ms = attempt_timeout_ms_ + RpcTimeouts::TransferMs(request.payload.size());
    // Uses attempt_timeout_ms instead of timeout_ms: the remaining time is for the transfer, during
    // which the peer need not give a sign of life.
    due_us_ = executor_->NowUs() + timeouts_.attempt_timeout_ms * 1000;
  }
  channel_->Call(method_, std::move(request), timeout_ms,
                 [self = shared_from_this(), attempt](absl::StatusOr<Message> outcome) {
                   self->OnOutcome(attempt, std::move(outcome));
                 });
}

void ReliableCall::OnOutcome(int64_t attempt, absl::StatusOr<Message> outcome) {
  Callback done;
  bool starting;
  {
    MutexLock lock(&mutex_);
    if (done_ == nullptr) return;  // answered already, or cancelled
    const Outcome stated = outcome.ok() ? OutcomeOf(*outcome) : OUTCOME_DONE;
    const bool repeat_at_once = stated == OUTCOME_WAIT || stated == OUTCOME_RESEND;
    if (repeat_at_once) {
      last_sign_us_ = executor_->NowUs();
      receiver_has_payload_ = stated == OUTCOME_WAIT;
    }
    if (repeat_at_once || IsLost(outcome.status())) {
      if (attempt != attempt_) return;  // reported twice: the next attempt decides
      if (stated == OUTCOME_RESEND && attempt_has_payload_) {
        // A repeat would get the same answer.
        outcome = absl::InternalError("answered RESEND, but the request had its payload");
      } else if (repeat_at_once || !IsSilentAfter(outcome.status())) {
        return Repeat(repeat_at_once);
      } else {
        outcome = SilenceError(outcome.status());
      }
    }
    done = std::exchange(done_, nullptr);
    starting = starting_;
  }
  if (starting) {
    PostDone(std::move(done), std::move(outcome));
  } else {
    done(std::move(outcome));
  }
}

bool ReliableCall::IsSilentAfter(const absl::Status& lost) {
  const bool is_slow = AnswerHadBegun(lost);
  if (is_slow) attempt_timeout_ms_ = std::min(2 * attempt_timeout_ms_, kLongestAttemptMs);
  DiscountStandstill(due_us_);
  absl::optional<int64_t> sign_ago_us = SignOfLifeAgoUs(lost);
  if (!sign_ago_us.has_value() && is_slow) sign_ago_us = 0;
  if (sign_ago_us.has_value()) {
    // However long the attempt continued after the last sign of life, no more than the time of a
    // whole attempt counts as silence.
    const int64_t silent_us = std::min(*sign_ago_us, timeouts_.attempt_timeout_ms * 1000);
    last_sign_us_ = std::max(last_sign_us_, executor_->NowUs() - silent_us);
  }
  return executor_->NowUs() - last_sign_us_ >= timeouts_.silence_timeout_ms * 1000;
}

void ReliableCall::DiscountStandstill(int64_t due_us) {
  const int64_t late_us = executor_->NowUs() - due_us - kUsualLatenessUs;
  if (late_us > 0) last_sign_us_ += late_us;
}

absl::Status ReliableCall::SilenceError(const absl::Status& last) const {
  return absl::Status(last.code(),
                      absl::StrCat(method_.path, ": no answer for ", timeouts_.silence_timeout_ms,
                                   " ms; the last error: ", last.message()));
}

// Posts a task for the repeat, so that a channel that answers at once does not deepen the stack.
void ReliableCall::Repeat(bool at_once) {
  Task task = [self = shared_from_this()] { self->MakeAttempt(); };
  ++attempt_;
  due_us_ = executor_->NowUs();
  if (at_once) {
    pause_us_ = kFirstPauseUs;
    executor_->Post(std::move(task));
  } else {
    due_us_ += pause_us_;
    executor_->PostAfter(pause_us_, std::move(task));
    pause_us_ = std::min(2 * pause_us_, kLongestPauseUs);
  }
}

void ReliableCall::PostDone(Callback done, absl::StatusOr<Message> result) {
  executor_->Post(
      [done = std::move(done), result = std::move(result)]() mutable { done(std::move(result)); });
}

Outcome OutcomeOf(const Message& answer) {
  // Every header that states an outcome begins with field 1, a varint. So the remaining bytes,
  // which may be many, need not be parsed.
  constexpr char kOutcomeTag = 0x08;
  const std::string& header = answer.header;
  if (header.size() < 2 || header[0] != kOutcomeTag) return OUTCOME_DONE;
  return Outcome_IsValid(header[1]) ? static_cast<Outcome>(header[1]) : OUTCOME_DONE;
}

}  // namespace satrap::rpc
