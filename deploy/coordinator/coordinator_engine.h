// The coordinator's engine: it knows who belongs to the run, whether the run goes on and why it
// ended; it leases splits and keeps the rendezvous store. It serves the methods of service
// Coordinator (proto/control.proto).
//
//   STARTING --all registered and ready--> RUNNING --Finish--> FINISHED
//       \-------------------------------------\---- Fail, a member lost or restarted --> FAILED
//
// FINISHED and FAILED are final. In them every method still answers, so that all members learn of
// the end. Of several failures the first is kept as the run's cause; later ones follow from it.
//
// Run and generation. The engine gives every member the run's envelope at Register. A call that
// carries another one is answered FAILED_PRECONDITION and changes nothing, so a process of an
// earlier run at the same addresses can neither stay a member nor end this run.
//
// Incarnations. A member is one process, known by the random number that it registers with. A
// second process under the same index ends the run, in STARTING as in RUNNING: either the first
// died, with all that it held, or two processes were started with one index, and the coordinator
// cannot tell which. STARTING is no exception, though little is lost then: a member that has
// registered and fails in STARTING ends the run as well (Fail), and taking the second process in
// would let two live ones drive each other out until the start timeout.
//
// Members, leases and the store live in memory. A coordinator that dies therefore ends the run:
// every role exits when it has had no answer for 8 s, or at once when a coordinator of another run
// answers.
//
// Thread-safe. No gRPC, no threads; time is the executor's.

#ifndef SATRAP_DEPLOY_COORDINATOR_COORDINATOR_ENGINE_H_
#define SATRAP_DEPLOY_COORDINATOR_COORDINATOR_ENGINE_H_

#include <cstdint>
#include <memory>

#include "common/rpc/rpc.h"
#include "common/thread/executor.h"
#include "proto/control.pb.h"
#include "proto/job.pb.h"

namespace satrap {

struct CoordinatorTimeouts {
  int64_t heartbeat_timeout_ms = 8000;  // a member silent for longer is lost
  // All members must have registered by then. Being ready has no time limit: a member that loads
  // for long shows by its heartbeats that it lives.
  int64_t start_timeout_ms = 600000;
};

class CoordinatorEngine final : public rpc::Handler {
 public:
  // `run_id` is the new run's: random, so that no two runs have the same. The executor is not
  // owned. It must outlive the engine, and may still hold the engine's timers afterwards.
  // REQUIRES: run_id != 0
  CoordinatorEngine(const JobConfig& job, uint64_t run_id, Executor* executor,
                    const CoordinatorTimeouts& timeouts = {});
  ~CoordinatorEngine() override;

  // Every call but Register and Status: FAILED_PRECONDITION if its envelope is of another run.
  //
  // Register     FAILED_PRECONDITION: another job, an index out of range, or another incarnation
  //              than the one registered there, which ends the run (see above). The same
  //              incarnation may register again. INVALID_ARGUMENT without an incarnation.
  // Heartbeat    FAILED_PRECONDITION: another incarnation, or never registered.
  // LeaseSplit   deals the splits of an epoch in order, each once. INVALID_ARGUMENT if loaders
  //              disagree on the number of splits.
  // StoreSet     ALREADY_EXISTS if the key has another value.
  // StoreGet     always succeeds.
  // Finish, Fail do nothing once the run has ended.
  // Status       FAILED_PRECONDITION if it asks for another run.
  void Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) override;

  // Whether the run has ended and every member that still sends heartbeats has been told so.
  bool EveryoneKnowsTheEnd() const;

  StatusAnswer Status() const;

 private:
  struct Rep;
  const std::shared_ptr<Rep> rep_;
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_COORDINATOR_COORDINATOR_ENGINE_H_
