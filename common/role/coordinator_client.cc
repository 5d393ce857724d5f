#include "common/role/coordinator_client.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "common/base/status_macros.h"
#include "common/role/ending.h"
#include "common/rpc/lost_call.h"
#include "common/thread/clock.h"
#include "common/thread/mutex.h"

namespace satrap {
namespace {

// The coordinator answers at once, so an attempt without an answer for this long is lost.
constexpr int64_t kAttemptTimeoutMs = 2000;
// If an attempt ends later than its timeout by more than this, this process was suspended.
constexpr int64_t kUsualLatenessMs = 1000;
// This time is longer than any wait for a broker: the coordinator limits that wait, and heartbeats
// notice if the coordinator itself is lost.
constexpr int64_t kFixSplitsTimeoutMs = int64_t{7} * 24 * 3600 * 1000;
// The pause between two attempts, and between two reads of a key that is not set yet.
constexpr int64_t kRetryPauseMs = 20;

// The answer to one attempt. The calling thread waits for it. The channel's callback shares the
// object, because the callback may still be in NotifyAll when the caller has already seen the
// answer and left.
struct Attempt {
  Mutex mutex;
  CondVar changed;
  absl::optional<absl::StatusOr<rpc::Message>> answer GUARDED_BY(mutex);
};

absl::StatusOr<rpc::Message> CallOnce(rpc::Channel* channel, const rpc::Method& method,
                                      std::string header, int64_t timeout_ms) {
  auto attempt = std::make_shared<Attempt>();
  rpc::Message request;
  request.header = std::move(header);
  channel->Call(method, std::move(request), timeout_ms,
                [attempt](absl::StatusOr<rpc::Message> answer) {
                  MutexLock lock(&attempt->mutex);
                  attempt->answer = std::move(answer);
                  attempt->changed.NotifyAll();
                });
  MutexLock lock(&attempt->mutex);
  while (!attempt->answer.has_value()) attempt->changed.Wait(&attempt->mutex);
  return *std::move(attempt->answer);
}

void Pause(int64_t pause_ms) {
  Mutex mutex;
  CondVar never;
  MutexLock lock(&mutex);
  never.WaitFor(&mutex, pause_ms);
}

}  // namespace

absl::Status CoordinatorClient::Call(const rpc::Method& method,
                                     const google::protobuf::MessageLite& request,
                                     int64_t timeout_ms, google::protobuf::MessageLite* answer) {
  int64_t deadline_ms = MonotonicMs() + timeout_ms;
  absl::Status error;
  while (true) {
    const int64_t start_ms = MonotonicMs();
    // Allows at least 1 ms, so that at least one attempt is made, however short the timeout.
    const int64_t attempt_ms =
        std::min(kAttemptTimeoutMs, std::max<int64_t>(deadline_ms - start_ms, 1));
    absl::StatusOr<rpc::Message> message =
        CallOnce(channel_, method, request.SerializeAsString(), attempt_ms);
    // Extends the deadline by the time for which this process was suspended, because no answer
    // could arrive then.
    deadline_ms += std::max<int64_t>(0, MonotonicMs() - start_ms - attempt_ms - kUsualLatenessMs);
    if (message.ok()) {
      if (answer->ParseFromString(message->header)) return absl::OkStatus();
      return absl::InternalError(absl::StrCat("malformed answer of ", method.path));
    }
    // The last attempt may be too short for an answer. An earlier attempt's error then says more.
    const bool cut_short =
        absl::IsDeadlineExceeded(message.status()) && attempt_ms < kAttemptTimeoutMs;
    if (error.ok() || !cut_short) error = message.status();
    if (!rpc::IsLost(error) || MonotonicMs() >= deadline_ms) {
      return absl::Status(error.code(), absl::StrCat("coordinator: ", error.message()));
    }
    Pause(kRetryPauseMs);
  }
}

absl::StatusOr<RegisterAnswer> CoordinatorClient::Register(const RegisterRequest& request) {
  RegisterAnswer answer;
  RETURN_IF_ERROR(Call(kRegister, request, &answer));
  return answer;
}

absl::StatusOr<StatusAnswer> CoordinatorClient::Status() {
  StatusRequest request;
  if (envelope_.has_run_id()) request.set_run_id(envelope_.run_id());
  StatusAnswer answer;
  RETURN_IF_ERROR(Call(kStatus, request, &answer));
  return answer;
}

absl::StatusOr<SplitList> CoordinatorClient::FixSplits(int loader, const SplitList& splits) {
  FixSplitsRequest request;
  *request.mutable_envelope() = envelope_;
  request.set_loader(static_cast<uint32_t>(loader));
  *request.mutable_splits() = splits;
  FixSplitsAnswer answer;
  RETURN_IF_ERROR(Call(kFixSplits, request, kFixSplitsTimeoutMs, &answer));
  return answer.splits();
}

absl::StatusOr<uint64_t> CoordinatorClient::Wish(const WishRequest& request) {
  WishAnswer answer;
  RETURN_IF_ERROR(Call(kWish, request, &answer));
  return answer.number();
}

absl::Status CoordinatorClient::Finish(const RunResult& result) {
  FinishRequest request;
  *request.mutable_envelope() = envelope_;
  *request.mutable_result() = result;
  FinishAnswer answer;
  return Call(kFinish, request, &answer);
}

absl::StatusOr<FailAnswer> CoordinatorClient::Fail(Role role, int index, uint64_t incarnation,
                                                   const absl::Status& error) {
  FailRequest request;
  *request.mutable_envelope() = envelope_;
  request.set_role(role);
  request.set_index(index);
  request.set_incarnation(incarnation);
  *request.mutable_ending() = FailureOf(role, index, error);
  FailAnswer answer;
  RETURN_IF_ERROR(Call(kFail, request, &answer));
  return answer;
}

absl::Status CoordinatorClient::Set(const std::string& key, const std::string& value) {
  StoreSetRequest request;
  *request.mutable_envelope() = envelope_;
  request.set_key(key);
  request.set_value(value);
  StoreSetAnswer answer;
  return Call(kStoreSet, request, &answer);
}

absl::StatusOr<std::string> CoordinatorClient::Get(const std::string& key, int64_t timeout_ms) {
  StoreGetRequest request;
  *request.mutable_envelope() = envelope_;
  request.set_key(key);
  const int64_t deadline_ms = MonotonicMs() + timeout_ms;
  while (true) {
    StoreGetAnswer answer;
    RETURN_IF_ERROR(Call(kStoreGet, request, &answer));
    if (answer.found()) return answer.value();
    if (MonotonicMs() >= deadline_ms) {
      return absl::DeadlineExceededError(
          absl::StrCat("nobody set '", key, "' within ", timeout_ms, " ms"));
    }
    Pause(kRetryPauseMs);
  }
}

}  // namespace satrap
