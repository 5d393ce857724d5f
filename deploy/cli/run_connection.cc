#include "deploy/cli/run_connection.h"

#include <poll.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/role/coordinator_client.h"
#include "common/thread/clock.h"
#include "deploy/launcher/process/run_folder.h"
#include "deploy/launcher/process/submission_end.h"

namespace satrap {
namespace {

constexpr int64_t kTimeoutMs = 2000;
constexpr int64_t kFirstAttemptMs = 250;
constexpr int kPeriodMs = 100;
// How long the coordinator of a run in pods may leave calls unanswered. A run on this machine needs
// no such limit: the launcher's lock shows whether the run still exists.
constexpr int64_t kMostAwayMs = 600000;

// Whether the same wish may succeed later although it was refused now.
bool MayBeTaken(const WishRequest& request, const absl::Status& refusal) {
  if (absl::IsUnavailable(refusal) || absl::IsDeadlineExceeded(refusal)) return true;
  // The coordinator refuses a stop while the run changes its size, and while the run is ending.
  // Neither lasts long.
  return request.kind() == WishRequest::STOP && absl::IsFailedPrecondition(refusal);
}

}  // namespace

absl::StatusOr<std::unique_ptr<RunConnection>> RunConnection::Open(const std::string& run_dir) {
  // Resolve the link: with the link in it, the path may be too long for a socket.
  std::error_code error;
  const auto sockets = std::filesystem::read_symlink(run_dir + "/sockets", error);
  if (error || RunnerOf(run_dir).empty()) {
    return absl::UnavailableError(absl::StrCat("nothing runs in ", run_dir, ": `satrap status ",
                                               run_dir, "` says how it ended, and `satrap resume ",
                                               run_dir, "` continues it"));
  }
  const std::string address = absl::StrCat("unix:", sockets.string(), "/coordinator_0");
  ASSIGN_OR_RETURN(auto channel, rpc::GrpcChannel::Create(address, rpc::EndpointOptions()));
  return std::unique_ptr<RunConnection>(
      new RunConnection(run_dir, absl::nullopt, address, std::move(channel)));
}

absl::StatusOr<std::unique_ptr<RunConnection>> RunConnection::OpenInPod(
    const std::string& run_dir, uint64_t submission, const std::string& address) {
  ASSIGN_OR_RETURN(auto channel, rpc::GrpcChannel::Create(address, rpc::EndpointOptions()));
  return std::unique_ptr<RunConnection>(
      new RunConnection(run_dir, submission, address, std::move(channel)));
}

bool RunConnection::HasEnded() const {
  if (!submission_.has_value()) return RunnerOf(run_dir_).empty();
  return EndOfSubmission(run_dir_, *submission_).has_value();
}

absl::StatusOr<StatusAnswer> RunConnection::Status() {
  const int64_t deadline_ms = MonotonicMs() + kTimeoutMs;
  for (int64_t attempt_ms = kFirstAttemptMs;; attempt_ms *= 2) {
    const int64_t left_ms = std::max<int64_t>(deadline_ms - MonotonicMs(), 1);
    absl::StatusOr<StatusAnswer> status =
        CoordinatorClient(channel_.get(), Envelope(), std::min(attempt_ms, left_ms)).Status();
    if (status.ok()) return status;
    ASSIGN_OR_RETURN(channel_, rpc::GrpcChannel::Create(address_, rpc::EndpointOptions()));
    if (MonotonicMs() >= deadline_ms) return status;
  }
}

absl::StatusOr<StatusAnswer> RunConnection::Fulfil(WishRequest request, Fulfilled fulfilled) {
  uint64_t generation = 0;
  uint64_t number = 0;
  int64_t answered_ms = MonotonicMs();
  while (true) {
    const absl::StatusOr<StatusAnswer> status = Status();
    if (status.ok()) answered_ms = MonotonicMs();
    if (!status.ok() && HasEnded()) {
      return absl::UnavailableError(absl::StrCat("the run in ", run_dir_, " has ended"));
    }
    if (submission_.has_value() && MonotonicMs() - answered_ms >= kMostAwayMs) {
      return absl::DeadlineExceededError(absl::StrCat("the coordinator of the run in ", run_dir_,
                                                      " has not answered for ", kMostAwayMs / 1000,
                                                      " s: ", status.status().message()));
    }
    if (status.ok()) {
      if (generation != 0 && fulfilled(*status, generation, number)) return status;
      switch (status->state()) {
        case FAILED:
          return absl::AbortedError(absl::StrCat("the run has failed: ", status->ending().text()));
        case FINISHED:
          return absl::FailedPreconditionError("the run has finished");
        case STOPPED:
          // Perhaps an earlier attempt of this request stopped the run, and only its answer was
          // lost.
          if (request.kind() == WishRequest::STOP) return status;
          return absl::FailedPreconditionError("the run has been stopped");
        case RESTARTING:
        case STARTING:
          // No cut can be taken in these states, but a stop can be asked for: the coordinator
          // accepts it before the run has begun, and the launcher accepts it between two
          // generations.
          if (request.kind() != WishRequest::STOP) break;
          [[fallthrough]];
        case RUNNING:
          // Make the wish again in each new generation, because a generation's wishes end with it.
          if (status->state() != RESTARTING && status->generation() == generation) break;
          request.set_run_id(status->run_id());
          const auto wished =
              CoordinatorClient(channel_.get(), Envelope(), kTimeoutMs).Wish(request);
          if (wished.ok()) {
            generation = status->generation();
            number = *wished;
            continue;  // a run that has just begun stops at once, and its coordinator soon ends
          } else if (!MayBeTaken(request, wished.status())) {
            return wished.status();
          }
          break;
      }
    }
    poll(nullptr, 0, kPeriodMs);
  }
}

}  // namespace satrap
