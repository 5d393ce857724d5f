#include "deploy/story/pod_stop.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/entries/run_end.h"
#include "common/role/coordinator_client.h"
#include "common/rpc/grpc_channel.h"
#include "common/thread/clock.h"
#include "deploy/launcher/process/submission_end.h"
#include "proto/control.pb.h"

namespace satrap {
namespace {

constexpr int64_t kPeriodMs = 500;
constexpr int64_t kAnswerMs = 2000;

// Asks the coordinator to stop, unless its generation was asked already. Returns the last
// generation that has accepted the wish; 0 if none has, or if the present one has refused it.
uint64_t AskOnce(rpc::Channel* channel, uint64_t asked_generation) {
  const absl::StatusOr<StatusAnswer> status =
      CoordinatorClient(channel, Envelope(), kAnswerMs).Status();
  if (!status.ok()) return asked_generation;
  const bool may_stop = status->state() == STARTING || status->state() == RUNNING;
  if (!may_stop || status->generation() == asked_generation) return asked_generation;
  WishRequest request;
  request.set_run_id(status->run_id());
  request.set_kind(WishRequest::STOP);
  // The coordinator refuses the wish while the run changes its size, but may accept it a moment
  // later.
  const auto wished = CoordinatorClient(channel, Envelope(), kAnswerMs).Wish(request);
  return wished.ok() ? status->generation() : 0;
}

absl::StatusOr<std::string> TextOf(const SubmissionEnd& over, bool has_asked) {
  if (!over.end.has_value()) {
    return absl::FailedPreconditionError("the run continues as a later submission");
  }
  const std::string& text = over.end->ending().text();
  switch (StateOf(*over.end)) {
    case STOPPED:
      return absl::StrCat(has_asked ? "the run has stopped: " : "the run had stopped already: ",
                          text);
    case FINISHED:
      return absl::FailedPreconditionError("the run has finished; there was nothing to stop");
    default:
      return absl::FailedPreconditionError(absl::StrCat("the run has failed: ", text));
  }
}

}  // namespace

absl::StatusOr<std::string> StopFromPod(const std::string& run_dir, uint64_t submission,
                                        const std::string& coordinator, int64_t limit_ms,
                                        const std::function<int(int64_t timeout_ms)>& wait) {
  const int64_t until_ms = MonotonicMs() + limit_ms;
  uint64_t asked_generation = 0;
  bool has_asked = false;
  while (true) {
    const absl::optional<SubmissionEnd> over = EndOfSubmission(run_dir, submission);
    if (over.has_value()) return TextOf(*over, has_asked);
    // Make a new channel each time: a channel that has failed waits longer and longer before it
    // tries again.
    ASSIGN_OR_RETURN(const auto channel,
                     rpc::GrpcChannel::Create(coordinator, rpc::EndpointOptions()));
    asked_generation = AskOnce(channel.get(), asked_generation);
    has_asked = has_asked || asked_generation != 0;
    if (MonotonicMs() >= until_ms) {
      return absl::DeadlineExceededError(
          has_asked ? absl::StrCat("the run was asked to stop, but has not stopped within ",
                                   limit_ms / 1000, " s")
                    : absl::StrCat("the run's coordinator has not answered within ",
                                   limit_ms / 1000, " s, so the run was not asked to stop"));
    }
    if (wait(kPeriodMs) != 0) return absl::CancelledError("stopped by a signal");
  }
}

}  // namespace satrap
