// A PsFanOut sends one call to several embedding PSs at once and gathers their answers.
//
// Thread-safe.

#ifndef SATRAP_EMBEDDING_WORKER_PS_FAN_OUT_H_
#define SATRAP_EMBEDDING_WORKER_PS_FAN_OUT_H_

#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "common/executor.h"
#include "common/rpc/rpc.h"
#include "common/rpc/timeouts.h"

namespace satrap {

struct PsRequest {
  int ps = 0;  // index of the embedding PS
  rpc::Message message;
};

class PsFanOut {
 public:
  // Gets the answers, answers[i] to requests[i], or the first error, which names the PS. Runs once,
  // on a task of the executor or of a channel.
  using Done = absl::AnyInvocable<void(absl::StatusOr<std::vector<rpc::Message>>)>;

  // `ps`: one channel each, by index. Nothing is owned; all must outlive the calls.
  PsFanOut(Executor* executor, std::vector<rpc::Channel*> ps, const rpc::RpcTimeouts& timeouts);

  int num_ps() const { return static_cast<int>(ps_.size()); }

  // Repeats each request until it is answered (common/rpc/reliable_call.h). REQUIRES: requests is
  // not empty
  void Call(const rpc::Method& method, std::vector<PsRequest> requests, Done done);

 private:
  Executor* const executor_;
  const std::vector<rpc::Channel*> ps_;
  const rpc::RpcTimeouts timeouts_;
};

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_WORKER_PS_FAN_OUT_H_
