// Answers the calls to a coordinator in a pod that cannot claim a generation, for a reason that no
// restart cures, such as a storage without hard links. The reason is not in the run's log, because
// the log cannot be written or does not have this submission. The Jobs of the run treat the answer
// as the end of the submission.
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

  // Answers Register with `wait`. Answers Status with FAILED, `why` and the submission, but without
  // a run or a generation, whichever run it asks for. All other calls get FAILED_PRECONDITION.
  void Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) override;

 private:
  StatusAnswer status_;
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_COORDINATOR_REFUSING_COORDINATOR_H_
