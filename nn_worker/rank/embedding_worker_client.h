// What a rank asks of the embedding workers: parts, and that a part's gradients be pushed or the
// part released. Each call is numbered and repeated until it is answered (common/rpc/
// reliable_call.h), at the worker that it was first sent to.
//
// Pushes are numbered over all workers, because the number travels on to the embedding PSs; the
// other calls are numbered per worker and stream.
//
// `done` runs on the executor, never inside the call, and only if the call succeeded. An error, an
// answer OLD and an answer that is not understood go to the FailureSink.
//
// Not thread-safe: used on one serial executor. REQUIRES: outlives its calls' answers.

#ifndef SATRAP_NN_WORKER_RANK_EMBEDDING_WORKER_CLIENT_H_
#define SATRAP_NN_WORKER_RANK_EMBEDDING_WORKER_CLIENT_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "common/executor.h"
#include "common/rpc/numbered_client.h"
#include "common/rpc/rpc.h"
#include "common/rpc/timeouts.h"
#include "nn_worker/rank/ask_policy.h"
#include "nn_worker/rank/step_trainer.h"
#include "proto/hot.pb.h"

namespace satrap {

class EmbeddingWorkerClient {
 public:
  using FailureSink = std::function<void(absl::Status)>;

  EmbeddingWorkerClient(int rank, const Envelope& envelope, const rpc::RpcTimeouts& timeouts,
                        Executor* executor, std::vector<rpc::Channel*> workers,
                        FailureSink on_failure);

  // Asks `ask.worker`. `step` is the step an ordered part will be trained in. `done` gets the
  // answer, whose result may be any but for an ordered ask, which is answered with its part.
  void NextBatch(const Ask& ask, uint64_t step, absl::AnyInvocable<void(PartInput)> done);

  // Pushes the gradients of the part `handle`. `gradients` may be empty.
  void PushGradients(int worker, uint64_t handle, const StepHeader& step, PartGradients gradients,
                     absl::AnyInvocable<void()> done);

  // Releases a part that gets no gradients.
  void Ack(int worker, Stream stream, uint64_t handle, absl::AnyInvocable<void()> done);

  int num_workers() const { return num_workers_; }

 private:
  using Done = absl::AnyInvocable<void(rpc::Message)>;
  // Hands the answer to `done` on the executor, or the error to the FailureSink.
  rpc::Callback OnExecutor(Done done);

  const int num_workers_;
  Executor* const executor_;
  const FailureSink on_failure_;
  rpc::NumberedClient push_;
  // By worker and stream.
  std::vector<std::vector<rpc::NumberedClient>> next_;
  std::vector<std::vector<rpc::NumberedClient>> ack_;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_RANK_EMBEDDING_WORKER_CLIENT_H_
