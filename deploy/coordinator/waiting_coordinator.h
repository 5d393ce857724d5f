// Answers for a coordinator that has claimed nothing because another one has the run: one of a
// later submission, or one in another pod. Whoever asks for a place is told to wait, until the
// address leads to the other coordinator. If that one is another pod's, and processes have asked
// here for kAskedMs, they do not find it, and this one may claim a generation.
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
  // Nobody has asked meanwhile if two calls are further apart. A process asks every second.
  static constexpr int64_t kAskedAgainMs = 3000;

  // `now_ms` is a clock. REQUIRES: last.superseded or last.waits_to_be_asked
  WaitingCoordinator(const ClaimedGeneration& last, std::function<int64_t()> now_ms);

  // Register: wait. Status: RESTARTING, SUPERSEDED. FAILED_PRECONDITION for all other calls, whose
  // generation is over.
  void Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) override;

  const Ending& why() const { return status_.ending(); }
  // Whether processes have asked for so long that this coordinator may claim.
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
