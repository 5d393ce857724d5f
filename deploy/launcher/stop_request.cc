#include "deploy/launcher/stop_request.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/check.h"
#include "common/role/coordinator_client.h"
#include "common/thread/clock.h"
#include "proto/control.pb.h"

namespace satrap {

void StopRequest::Begin(double stop_seconds) {
  CHECK(!begun());
  deadline_ms_ = MonotonicMs() + static_cast<int64_t>(stop_seconds * 1000);
}

bool StopRequest::Try(rpc::GrpcChannel* channel, uint64_t run_id, int64_t timeout_ms) {
  CHECK(begun() && !taken_);
  WishRequest request;
  request.set_run_id(run_id);
  request.set_kind(WishRequest::STOP);
  const absl::StatusOr<uint64_t> wished =
      CoordinatorClient(channel, Envelope(), timeout_ms).Wish(request);
  taken_ = wished.ok();
  // A refusal is not final: a change of size, which refuses a stop, ends by itself.
  if (absl::IsFailedPrecondition(wished.status())) {
    waits_for_ = std::string(wished.status().message());
  } else {
    waits_for_ = "the coordinator does not answer";
  }
  return taken_;
}

bool StopRequest::IsLate() const { return begun() && MonotonicMs() >= deadline_ms_; }

}  // namespace satrap
