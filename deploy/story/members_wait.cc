#include "deploy/story/members_wait.h"

#include "common/refusal/refusal.h"
#include "common/role/coordinator_client.h"
#include "common/rpc/grpc_channel.h"
#include "deploy/launcher/process/submission_end.h"
#include "proto/control.pb.h"

namespace satrap {
namespace {

constexpr int64_t kLookMs = 1000;
constexpr int64_t kAnswerMs = 1000;
constexpr int64_t kToldMs = 5000;
constexpr int kSignalExit = 128;

// Makes a new channel each time, because a channel that has failed to connect waits longer and
// longer before it tries again.
bool Refuses(const std::string& coordinator, uint64_t submission) {
  const auto channel = rpc::GrpcChannel::Create(coordinator, rpc::EndpointOptions());
  if (!channel.ok()) return false;
  const absl::StatusOr<StatusAnswer> status =
      CoordinatorClient(channel->get(), Envelope(), kAnswerMs).Status();
  return status.ok() && IsRefusal(*status, submission);
}

}  // namespace

int AwaitSubmissionEnd(const std::string& run_dir, uint64_t submission,
                       const std::string& coordinator,
                       const std::function<int(int64_t timeout_ms)>& wait) {
  const RefusalWatch refusal(run_dir, submission);
  bool has_begun = false;
  while (!EndOfSubmission(run_dir, submission).has_value() && !refusal.New().has_value()) {
    // Once the submission has begun, only a coordinator that does not see the log can still refuse
    // it.
    has_begun = has_begun || HasBegun(run_dir, submission);
    if (!has_begun && Refuses(coordinator, submission)) break;
    if (const int signal = wait(kLookMs); signal != 0) return kSignalExit + signal;
  }
  const int signal = wait(kToldMs);
  return signal == 0 ? 0 : kSignalExit + signal;
}

}  // namespace satrap
