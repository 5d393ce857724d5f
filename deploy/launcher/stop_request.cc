#include "deploy/launcher/stop_request.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/role/coordinator_client.h"
#include "common/thread/clock.h"
#include "proto/control.pb.h"

namespace satrap {

void StopRequest::Begin(double stop_seconds) {
  CHECK(!begun());
  stop_seconds_ = stop_seconds;
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
  // A refusal is not final: during a change of size a stop is refused, but that soon ends.
  if (absl::IsFailedPrecondition(wished.status())) {
    waits_for_ = std::string(wished.status().message());
  } else {
    waits_for_ = "the coordinator does not answer";
  }
  return taken_;
}

bool StopRequest::IsLate() const { return begun() && MonotonicMs() >= deadline_ms_; }

std::string StopRequest::LateText() const {
  if (!taken_) {
    return absl::StrCat("the last cut could not be requested within ", stop_seconds_,
                        " s (stop_seconds): ", waits_for_);
  }
  return absl::StrCat("the run did not stop with a last cut within ", stop_seconds_,
                      " s (stop_seconds)");
}

}  // namespace satrap
