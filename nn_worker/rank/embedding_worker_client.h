// A rank's calls to the embedding workers: requests for parts, and pushes or releases of parts.
// Each call is numbered, and is repeated until it is answered (common/rpc/reliable_call.h), always
// at the same worker.
//
// Pushes are numbered over all workers, because the number travels on to the embedding PSs; the
// other calls are numbered per worker and stream.
//
// `done` runs on the executor, never inside the call, and only if the call succeeded. An error, the
// answer OLD and an answer that cannot be parsed go to the FailureSink.
//
// Not thread-safe: used on one serial executor. REQUIRES: outlives the answers of its calls

#ifndef SATRAP_NN_WORKER_RANK_EMBEDDING_WORKER_CLIENT_H_
#define SATRAP_NN_WORKER_RANK_EMBEDDING_WORKER_CLIENT_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "common/rpc/numbered_client.h"
#include "common/rpc/rpc.h"
#include "common/rpc/timeouts.h"
#include "common/thread/executor.h"
#include "nn_worker/rank/part_messages.h"
#include "nn_worker/rank/request_policy.h"
#include "proto/hot.pb.h"

namespace satrap {

class EmbeddingWorkerClient {
 public:
  using FailureSink = std::function<void(absl::Status)>;

  EmbeddingWorkerClient(int rank, const Envelope& envelope, const rpc::RpcTimeouts& timeouts,
                        Executor* executor, std::vector<rpc::Channel*> workers,
                        FailureSink on_failure);

  // Requests a part from `request.worker`. `step` is the step that an ordered part will be trained
  // in. `done` gets the answer. The answer to an ordered request always contains the part.
  void NextBatch(const PartRequest& request, uint64_t step,
                 absl::AnyInvocable<void(PartInput)> done);

  // Pushes the gradients of the part `handle`. `gradients` may be empty. `done` gets the answer.
  void PushGradients(int worker, uint64_t handle, const StepHeader& step, PartGradients gradients,
                     absl::AnyInvocable<void(const PushGradientsAnswerHeader&)> done);

  // Releases a part that has no gradients to push.
  void Ack(int worker, Stream stream, uint64_t handle, absl::AnyInvocable<void()> done);

 private:
  using Done = absl::AnyInvocable<void(rpc::Message)>;
  // Hands the answer to `done` on the executor, or the error to the FailureSink.
  rpc::Callback OnExecutor(Done done);

  Executor* const executor_;
  const FailureSink on_failure_;
  rpc::NumberedClient push_;
  // By worker and stream.
  std::vector<std::vector<rpc::NumberedClient>> next_;
  std::vector<std::vector<rpc::NumberedClient>> ack_;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_RANK_EMBEDDING_WORKER_CLIENT_H_
