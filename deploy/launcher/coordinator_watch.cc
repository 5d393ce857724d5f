#include "deploy/launcher/coordinator_watch.h"

#include <algorithm>
#include <utility>

#include "common/base/status_macros.h"
#include "common/role/coordinator_client.h"
#include "common/role/role_flags.h"
#include "common/rpc/endpoints.h"
#include "common/thread/clock.h"

namespace satrap {
namespace {

constexpr int64_t kPeriodMs = 250;
// The time-out is short, because the launcher does not notice deaths during a call.
constexpr int64_t kTimeoutMs = 500;
// After this time without an answer, a coordinator that has answered before counts as silent, as it
// does for its members. A coordinator that was just started has kFirstAnswerMs, because it may
// still be reading the log of a long run.
constexpr int64_t kSilentMs = kHeartbeatTimeoutMs + 1000;
constexpr int64_t kFirstAnswerMs = 60000;

}  // namespace

absl::Status CoordinatorWatch::Begin(const std::string& address) {
  // Make a new channel: one that has failed to reach the previous coordinator would wait before it
  // tries again.
  ASSIGN_OR_RETURN(channel_, rpc::GrpcChannel::Create(address, rpc::EndpointOptions()));
  // Keep the run id, so that a coordinator of another run cannot answer for this one.
  StatusAnswer fresh;
  if (status_.has_run_id()) fresh.set_run_id(status_.run_id());
  status_ = std::move(fresh);
  has_answered_ = has_run_ = answers_ = false;
  silent_ms_ = over_ms_ = next_ms_ = 0;
  return absl::OkStatus();
}

void CoordinatorWatch::Ask() {
  // The first call names no run. Its answer must be this run's, because only the process that the
  // launcher has started can listen in the run's socket folder.
  Envelope envelope;
  if (status_.has_run_id()) envelope.set_run_id(status_.run_id());
  CoordinatorClient client(channel_.get(), envelope, kTimeoutMs);
  const int64_t start_ms = MonotonicMs();
  absl::StatusOr<StatusAnswer> answer = client.Status();
  answers_ = answer.ok();
  if (answer.ok()) {
    status_ = *std::move(answer);
    has_answered_ = true;
    has_run_ |= state() == RUNNING;
    silent_ms_ = 0;
  } else {
    // If the call took longer than 2 * kTimeoutMs, this process itself was suspended, so do not
    // count the rest.
    silent_ms_ += std::min(MonotonicMs() - start_ms, 2 * kTimeoutMs) + kPeriodMs;
  }
  // A process that ends after the run's end was decided is not the cause of that end.
  const bool is_decided = SaysGenerationIsOver() || status_.writes_end();
  if (is_decided && over_ms_ == 0) over_ms_ = MonotonicMs();
  next_ms_ = MonotonicMs() + kPeriodMs;
}

bool CoordinatorWatch::IsDue() const { return MonotonicMs() >= next_ms_; }

bool CoordinatorWatch::TryStop(StopRequest* stop) {
  return stop->Try(channel_.get(), status_.run_id(), kTimeoutMs);
}

bool CoordinatorWatch::IsSilent() const {
  return silent_ms_ >= (has_answered_ ? kSilentMs : kFirstAnswerMs);
}

}  // namespace satrap
