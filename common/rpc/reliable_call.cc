#include "common/rpc/reliable_call.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/mutex.h"

namespace satrap::rpc {
namespace {

constexpr int64_t kFirstPauseUs = 20 * 1000;
constexpr int64_t kLongestPauseUs = 1000 * 1000;

bool IsPeerAway(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
}

class OpenCall final : public CallHandle, public std::enable_shared_from_this<OpenCall> {
 public:
  OpenCall(Executor* executor, Channel* channel, const Method& method, const RpcTimeouts& timeouts,
           RequestMaker make_request, Callback done)
      : executor_(executor),
        channel_(channel),
        method_(method),
        timeouts_(timeouts),
        make_request_(std::move(make_request)),
        done_(std::move(done)),
        last_sign_us_(executor->NowUs()) {}

  void Start() {
    MakeAttempt();
    MutexLock lock(&mutex_);
    starting_ = false;
  }

  void Cancel() override {
    Callback done;
    {
      MutexLock lock(&mutex_);
      if (done_ == nullptr) return;
      done = std::exchange(done_, nullptr);
    }
    PostDone(std::move(done), absl::CancelledError("call was cancelled"));
  }

 private:
  void MakeAttempt() {
    int64_t attempt;
    {
      MutexLock lock(&mutex_);
      if (done_ == nullptr) return;
      attempt = ++attempt_;
    }
    channel_->Call(method_, make_request_(), timeouts_.attempt_timeout_ms,
                   [self = shared_from_this(), attempt](absl::StatusOr<Message> outcome) {
                     self->OnOutcome(attempt, std::move(outcome));
                   });
  }

  void OnOutcome(int64_t attempt, absl::StatusOr<Message> outcome) {
    Callback done;
    bool starting;
    {
      MutexLock lock(&mutex_);
      if (done_ == nullptr) return;  // answered already, or cancelled
      const bool wait = outcome.ok() && OutcomeOf(*outcome) == WAIT;
      if (wait || IsPeerAway(outcome.status())) {
        if (wait) last_sign_us_ = executor_->NowUs();
        if (attempt != attempt_) return;  // the attempt that runs decides
        if (wait || !IsSilentTooLong()) return Repeat(wait);
        outcome = SilenceError(outcome.status());
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

  bool IsSilentTooLong() const REQUIRES(mutex_) {
    return executor_->NowUs() - last_sign_us_ >= timeouts_.silence_timeout_ms * 1000;
  }

  absl::Status SilenceError(const absl::Status& last) const {
    return absl::Status(last.code(),
                        absl::StrCat(method_.path, ": no answer for ", timeouts_.silence_timeout_ms,
                                     " ms; last: ", last.message()));
  }

  // A task, so that a channel that answers at once does not make the stack deep.
  void Repeat(bool at_once) REQUIRES(mutex_) {
    Task task = [self = shared_from_this()] { self->MakeAttempt(); };
    if (at_once) {
      pause_us_ = kFirstPauseUs;
      executor_->Post(std::move(task));
    } else {
      executor_->PostAfter(pause_us_, std::move(task));
      pause_us_ = std::min(2 * pause_us_, kLongestPauseUs);
    }
  }

  void PostDone(Callback done, absl::StatusOr<Message> result) {
    executor_->Post([done = std::move(done), result = std::move(result)]() mutable {
      done(std::move(result));
    });
  }

  Executor* const executor_;
  Channel* const channel_;
  const Method method_;
  const RpcTimeouts timeouts_;
  const RequestMaker make_request_;

  Mutex mutex_;
  Callback done_ GUARDED_BY(mutex_);  // null once the call has its result
  bool starting_ GUARDED_BY(mutex_) = true;
  int64_t attempt_ GUARDED_BY(mutex_) = 0;
  int64_t last_sign_us_ GUARDED_BY(mutex_);
  int64_t pause_us_ GUARDED_BY(mutex_) = kFirstPauseUs;
};

}  // namespace

std::shared_ptr<CallHandle> StartReliableCall(Executor* executor, Channel* channel,
                                              const Method& method, const RpcTimeouts& timeouts,
                                              RequestMaker make_request, Callback done) {
  auto call = std::make_shared<OpenCall>(executor, channel, method, timeouts,
                                         std::move(make_request), std::move(done));
  call->Start();
  return call;
}

Outcome OutcomeOf(const Message& answer) {
  // Field 1 as a varint comes first in every header that states an outcome. The rest, which may be
  // long, is not parsed for it.
  constexpr char kOutcomeTag = 0x08;
  const std::string& header = answer.header;
  if (header.size() < 2 || header[0] != kOutcomeTag) return DONE;
  return Outcome_IsValid(header[1]) ? static_cast<Outcome>(header[1]) : DONE;
}

}  // namespace satrap::rpc
