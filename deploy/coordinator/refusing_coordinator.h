// Answers for a coordinator in a pod that can claim no generation for a reason which no restart
// cures, such as a storage without hard links: the run's log cannot say so, or knows nothing of
// this submission. The Jobs of the run take its answer for the end of the submission.
//
// Thread-safe.

#ifndef SATRAP_DEPLOY_COORDINATOR_REFUSING_COORDINATOR_H_
#define SATRAP_DEPLOY_COORDINATOR_REFUSING_COORDINATOR_H_

#include <cstdint>

#include "common/rpc/rpc.h"
#include "proto/control.pb.h"

namespace satrap {

class RefusingCoordinator final : public rpc::Handler {
 public:
  // `why` says why `submission` cannot begin.
  RefusingCoordinator(uint64_t submission, const Ending& why);

  // Register: wait. Status, whichever run it asks for: FAILED, with `why` and the submission, and
  // without a run or a generation. FAILED_PRECONDITION for all other calls.
  void Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) override;

 private:
  StatusAnswer status_;
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_COORDINATOR_REFUSING_COORDINATOR_H_
