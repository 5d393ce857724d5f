// The coordinator's engine: who belongs to the run, whether it runs, why it ended; split leases and
// the rendezvous store. It serves the methods of service Coordinator (proto/control.proto).
//
//   STARTING --all registered--> RUNNING --Finish--> FINISHED
//       \---------------------------\----Fail, a member lost---> FAILED
//
// The first cause of a failure is kept; later ones are its echo. FINISHED and FAILED are final; in
// them every method still answers, so that all members learn of the end.
//
// Members, leases and the store live in memory: a coordinator that dies ends the run, as every
// role that does not hear of it for 8 s exits.
//
// Thread-safe. No gRPC, no threads; time is the executor's.

#ifndef SATRAP_DEPLOY_COORDINATOR_COORDINATOR_ENGINE_H_
#define SATRAP_DEPLOY_COORDINATOR_COORDINATOR_ENGINE_H_

#include <cstdint>
#include <memory>

#include "common/executor.h"
#include "common/rpc/rpc.h"
#include "proto/control.pb.h"
#include "proto/job.pb.h"

namespace satrap {

struct CoordinatorTimeouts {
  int64_t heartbeat_timeout_ms = 8000;  // a member silent for longer is lost
  int64_t start_timeout_ms = 600000;    // all members must have registered by then
};

class CoordinatorEngine final : public rpc::Handler {
 public:
  // `executor` is not owned and must outlive the engine; the engine's own timers on it may not.
  CoordinatorEngine(const JobConfig& job, Executor* executor,
                    const CoordinatorTimeouts& timeouts = {});
  ~CoordinatorEngine() override;

  // Register     FAILED_PRECONDITION: another job; an index out of range, or taken by another
  //              process. The same process may register again.
  // Heartbeat    FAILED_PRECONDITION: another generation, or never registered.
  // LeaseSplit   deals the splits of an epoch in order, each once. INVALID_ARGUMENT if loaders
  //              disagree on the number of splits; FAILED_PRECONDITION as Heartbeat.
  // StoreSet     ALREADY_EXISTS if the key has another value.
  // StoreGet, Status  always succeed.
  // Finish, Fail      always succeed; do nothing once the run has ended.
  void Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) override;

  // Whether the run has ended and every member that is still heard has been told so.
  bool EveryoneKnowsTheEnd() const;

  StatusAnswer Status() const;

 private:
  struct Rep;
  const std::shared_ptr<Rep> rep_;
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_COORDINATOR_COORDINATOR_ENGINE_H_
