// A PsFanOut sends one call to several embedding PSs at once and collects their answers: the
// Lookups of a part, the Updates of a push, or its ApplySteps. Each request is repeated until it is
// answered, and runs only once at its PS (common/rpc/numbered_client.h).
//
// Thread-safe.

#ifndef SATRAP_EMBEDDING_WORKER_PS_FAN_OUT_H_
#define SATRAP_EMBEDDING_WORKER_PS_FAN_OUT_H_

#include <cstdint>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "common/rpc/numbered_client.h"
#include "common/rpc/rpc.h"
#include "common/rpc/timeouts.h"
#include "common/thread/executor.h"
#include "proto/hot.pb.h"

namespace satrap {

struct PsRequest {
  int ps = 0;            // index of the embedding PS
  rpc::Message message;  // its header has neither envelope nor call: they are added when it is sent
};

class PsFanOut {
 public:
  // Receives the answers, where answers[i] belongs to requests[i], or the first error, which names
  // method and PS. Called once, on a thread of the executor or of a channel.
  using Done = absl::AnyInvocable<void(absl::StatusOr<std::vector<rpc::Message>>)>;

  // `worker` is the index of this embedding worker, which is the sender of its Lookups. `ps` has a
  // channel to each PS, by index. Nothing is owned; everything must outlive the calls.
  PsFanOut(Executor* executor, const std::vector<rpc::Channel*>& ps, const Envelope& envelope,
           uint32_t worker, const rpc::RpcTimeouts& timeouts);

  int num_ps() const { return static_cast<int>(lookups_.size()); }

  // REQUIRES: requests is not empty
  void Lookup(std::vector<PsRequest> requests, Done done);

  // Sends the Updates of one push. All have the id `push` that the rank gave the push, so each PS
  // applies the push only once, even if it also arrives in another way. REQUIRES: requests is not
  // empty
  void Update(const CallId& push, std::vector<PsRequest> requests, Done done);

  // Sends `header`, to which it adds envelope and call, to every PS, with the id `push`.
  void ApplyStep(const CallId& push, const ApplyStepHeader& header, Done done);

 private:
  // A client for each PS, so that a slow PS does not make the other PSs keep their answers longer.
  std::vector<rpc::NumberedClient> lookups_;
  rpc::NumberedClient updates_;
  rpc::NumberedClient apply_steps_;
};

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_WORKER_PS_FAN_OUT_H_
