// Answers the calls to a coordinator that has claimed nothing because another coordinator has the
// run: one of a later submission, or one in another pod. Processes that ask for a place are told to
// wait until the address leads to the other coordinator. But if that one is in another pod, and
// processes have asked here for kAskedMs, they evidently do not find it. Then this coordinator may
// claim a generation.
//
// Thread-safe.

#ifndef SATRAP_DEPLOY_COORDINATOR_WAITING_COORDINATOR_H_
#define SATRAP_DEPLOY_COORDINATOR_WAITING_COORDINATOR_H_

#include <cstdint>
#include <functional>

#include "absl/types/optional.h"
#include "common/rpc/rpc.h"
#include "common/thread/mutex.h"
#include "deploy/coordinator/claim/generation_claim.h"
#include "proto/control.pb.h"

namespace satrap {

class WaitingCoordinator final : public rpc::Handler {
 public:
  static constexpr int64_t kAskedMs = 8000;
  // If two calls are further apart, kAskedMs begins anew. A process that waits asks every second.
  static constexpr int64_t kAskedAgainMs = 3000;

  // `now_ms` is a clock. REQUIRES: last.superseded or last.waits_to_be_asked
  WaitingCoordinator(const ClaimedGeneration& last, std::function<int64_t()> now_ms);

  // Answers Register with `wait`, and Status with RESTARTING, because of SUPERSEDED. All other
  // calls get FAILED_PRECONDITION, because their generation is over.
  void Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) override;

  const Ending& why() const { return status_.ending(); }
  // Whether this coordinator may claim, because processes have asked it for kAskedMs.
  bool MayClaim();

 private:
  void TakeAsked();

  const bool waits_to_be_asked_;
  const std::function<int64_t()> now_ms_;
  StatusAnswer status_;
  Mutex mutex_;
  absl::optional<int64_t> asked_since_ms_ GUARDED_BY(mutex_);
  int64_t last_asked_ms_ GUARDED_BY(mutex_) = 0;
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_COORDINATOR_WAITING_COORDINATOR_H_
