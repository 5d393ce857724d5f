// Answers for a coordinator whose run a later submission has: it has claimed nothing, and whoever
// asks it for a place is told to wait, until the address leads to the other coordinator.
//
// Thread-safe.

#ifndef SATRAP_DEPLOY_COORDINATOR_WAITING_COORDINATOR_H_
#define SATRAP_DEPLOY_COORDINATOR_WAITING_COORDINATOR_H_

#include "common/rpc/rpc.h"
#include "deploy/coordinator/claim/generation_claim.h"
#include "proto/control.pb.h"

namespace satrap {

class WaitingCoordinator final : public rpc::Handler {
 public:
  explicit WaitingCoordinator(const ClaimedGeneration& last);

  // Register: wait. Status: RESTARTING, SUPERSEDED. FAILED_PRECONDITION for all other calls, whose
  // generation is over.
  void Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) override;

  const Ending& why() const { return status_.ending(); }

 private:
  StatusAnswer status_;
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_COORDINATOR_WAITING_COORDINATOR_H_
