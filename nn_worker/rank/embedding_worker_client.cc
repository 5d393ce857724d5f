#include "nn_worker/rank/embedding_worker_client.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/rpc/header.h"
#include "common/rpc/hot_methods.h"

namespace satrap {

EmbeddingWorkerClient::EmbeddingWorkerClient(int rank, const Envelope& envelope,
                                             const rpc::RpcTimeouts& timeouts, Executor* executor,
                                             std::vector<rpc::Channel*> workers,
                                             FailureSink on_failure)
    : executor_(executor),
      on_failure_(std::move(on_failure)),
      push_({rpc::kPushGradients, envelope, static_cast<uint32_t>(rank), timeouts}, executor,
            rpc::PeersOf("embedding_worker", workers)),
      next_(workers.size()),
      ack_(workers.size()) {
  const std::vector<rpc::Peer> peers = rpc::PeersOf("embedding_worker", workers);
  for (size_t worker = 0; worker < peers.size(); ++worker) {
    for (int stream = 0; stream < Stream_ARRAYSIZE; ++stream) {
      const auto client_of = [&](const rpc::Method& method) {
        return rpc::NumberedClient({method, envelope, static_cast<uint32_t>(rank), timeouts},
                                   executor, {peers[worker]});
      };
      next_[worker].push_back(client_of(rpc::kNextBatch));
      ack_[worker].push_back(client_of(rpc::kAck));
    }
  }
}

rpc::Callback EmbeddingWorkerClient::OnExecutor(Done done) {
  return [this, done = std::move(done)](absl::StatusOr<rpc::Message> answer) mutable {
    executor_->Post([this, done = std::move(done), answer = std::move(answer)]() mutable {
      if (answer.ok()) {
        done(*std::move(answer));
      } else {
        on_failure_(answer.status());
      }
    });
  };
}

void EmbeddingWorkerClient::NextBatch(const PartRequest& request, uint64_t step,
                                      absl::AnyInvocable<void(PartInput)> done) {
  NextBatchHeader header;
  header.set_stream(request.stream);
  header.set_epoch(request.epoch);
  header.set_wait_ms(request.wait_ms);
  const bool ordered = request.wanted.has_value();
  if (ordered) {
    *header.mutable_wanted() = *request.wanted;
    header.set_step(step);
  }
  next_[request.worker][request.stream].Call(
      0, rpc::MessageOf(header),
      OnExecutor([this, ordered, worker = request.worker,
                  done = std::move(done)](rpc::Message answer) mutable {
        PartInput input;
        if (!input.header.ParseFromString(answer.header) || !input.header.has_result()) {
          on_failure_(absl::InvalidArgumentError(absl::StrCat(
              "NextBatch to embedding_worker ", worker, ": the answer has no result")));
          return;
        }
        if (ordered && input.header.result() != NextBatchAnswerHeader::PART) {
          on_failure_(absl::InternalError(absl::StrCat("NextBatch to embedding_worker ", worker,
                                                       ": the answer lacks the requested part")));
          return;
        }
        input.payload = std::move(answer.payload);
        done(std::move(input));
      }));
}

void EmbeddingWorkerClient::PushGradients(
    int worker, uint64_t handle, const StepHeader& step, PartGradients gradients,
    absl::AnyInvocable<void(const PushGradientsAnswerHeader&)> done) {
  PushGradientsHeader header = std::move(gradients.header);
  header.set_handle(handle);
  *header.mutable_step() = step;
  push_.Call(
      worker, {header.SerializeAsString(), std::move(gradients.payload)},
      OnExecutor([this, worker, done = std::move(done)](const rpc::Message& message) mutable {
        PushGradientsAnswerHeader answer;
        if (!answer.ParseFromString(message.header)) {
          on_failure_(absl::InvalidArgumentError(
              absl::StrCat("PushGradients to embedding_worker ", worker, ": a malformed answer")));
          return;
        }
        done(answer);
      }));
}

void EmbeddingWorkerClient::Ack(int worker, Stream stream, uint64_t handle,
                                absl::AnyInvocable<void()> done) {
  AckHeader header;
  header.set_stream(stream);
  header.set_handle(handle);
  ack_[worker][stream].Call(
      0, rpc::MessageOf(header),
      OnExecutor([done = std::move(done)](const rpc::Message&) mutable { done(); }));
}

}  // namespace satrap
