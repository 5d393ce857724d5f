#include "nn_worker/rank/embedding_worker_client.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/rpc/hot_methods.h"
#include "common/rpc/reliable_call.h"

namespace satrap {
namespace {

absl::Status Named(const absl::Status& status, const rpc::Method& method, int worker) {
  return absl::Status(status.code(), absl::StrCat(method.path, " at embedding_worker ", worker,
                                                  ": ", std::string(status.message())));
}

// The answer of a call that was done; anything else is against the contract.
absl::StatusOr<rpc::Message> Done(absl::StatusOr<rpc::Message> answer) {
  if (!answer.ok()) return answer;
  const int outcome = rpc::OutcomeOf(*answer);
  if (outcome == DONE) return answer;
  return absl::InternalError(absl::StrCat("answered ", Outcome_Name(outcome)));
}

}  // namespace

EmbeddingWorkerClient::EmbeddingWorkerClient(int rank, const Envelope& envelope,
                                             const rpc::RpcTimeouts& timeouts, Executor* executor,
                                             std::vector<rpc::Channel*> workers,
                                             FailureSink on_failure)
    : rank_(rank),
      envelope_(envelope),
      timeouts_(timeouts),
      executor_(executor),
      workers_(std::move(workers)),
      on_failure_(std::move(on_failure)),
      next_numbers_(workers_.size()),
      ack_numbers_(workers_.size()) {}

template <typename Header>
void EmbeddingWorkerClient::Send(const rpc::Method& method, int worker, rpc::CallNumbers* numbers,
                                 Header header, Buffer payload,
                                 absl::AnyInvocable<void(rpc::Message)> done) {
  const uint64_t number = numbers->Begin();
  *header.mutable_envelope() = envelope_;
  header.mutable_call()->set_sender(rank_);
  header.mutable_call()->set_number(number);
  auto make_request = [header = std::move(header), payload = std::move(payload),
                       numbers]() mutable {
    header.mutable_call()->set_oldest_open(numbers->oldest_open());
    return rpc::Message{header.SerializeAsString(), payload};
  };
  auto on_answer = [this, method, worker, numbers, number,
                    done = std::move(done)](absl::StatusOr<rpc::Message> answer) mutable {
    executor_->Post([this, method, worker, numbers, number, done = std::move(done),
                     answer = std::move(answer)]() mutable {
      numbers->End(number);
      answer = Done(std::move(answer));
      if (!answer.ok()) {
        on_failure_(Named(answer.status(), method, worker));
        return;
      }
      done(*std::move(answer));
    });
  };
  rpc::StartReliableCall(executor_, workers_[worker], method, timeouts_, std::move(make_request),
                         std::move(on_answer));
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
  Send(
      rpc::kNextBatch, request.worker, &next_numbers_[request.worker][request.stream],
      std::move(header), Buffer(),
      [this, ordered, worker = request.worker,
       done = std::move(done)](rpc::Message answer) mutable {
        PartInput input;
        if (!input.header.ParseFromString(answer.header) || !input.header.has_result()) {
          on_failure_(Named(absl::InvalidArgumentError("the answer has no result"), rpc::kNextBatch,
                            worker));
          return;
        }
        if (ordered && input.header.result() != NextBatchAnswerHeader::PART) {
          on_failure_(Named(absl::InternalError("an ordered request was answered without its part"),
                            rpc::kNextBatch, worker));
          return;
        }
        input.payload = std::move(answer.payload);
        done(std::move(input));
      });
}

void EmbeddingWorkerClient::PushGradients(int worker, uint64_t handle, const StepHeader& step,
                                          PartGradients gradients,
                                          absl::AnyInvocable<void()> done) {
  PushGradientsHeader header = std::move(gradients.header);
  header.set_handle(handle);
  *header.mutable_step() = step;
  Send(rpc::kPushGradients, worker, &push_numbers_, std::move(header), std::move(gradients.payload),
       [done = std::move(done)](rpc::Message) mutable { done(); });
}

void EmbeddingWorkerClient::Ack(int worker, Stream stream, uint64_t handle,
                                absl::AnyInvocable<void()> done) {
  AckHeader header;
  header.set_stream(stream);
  header.set_handle(handle);
  Send(rpc::kAck, worker, &ack_numbers_[worker][stream], std::move(header), Buffer(),
       [done = std::move(done)](rpc::Message) mutable { done(); });
}

}  // namespace satrap
