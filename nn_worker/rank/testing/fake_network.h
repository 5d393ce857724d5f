// A network for tests of RankEngines that delays each message by the same time. A network that
// draws delays, and also loses and repeats messages, is in tests/simulation.

#ifndef SATRAP_NN_WORKER_RANK_TESTING_FAKE_NETWORK_H_
#define SATRAP_NN_WORKER_RANK_TESTING_FAKE_NETWORK_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "common/rpc/rpc.h"
#include "common/testing/manual_executor.h"

namespace satrap {

// The connection of one rank to one peer. Nothing is owned.
class FakeLink final : public rpc::Channel {
 public:
  FakeLink(ManualExecutor* executor, int64_t delay_us, rpc::Handler* peer)
      : executor_(executor), delay_us_(delay_us), peer_(peer) {}

  void Call(const rpc::Method& method, rpc::Message request, int64_t timeout_ms,
            rpc::Callback done) override {
    auto once = std::make_shared<rpc::Callback>(std::move(done));
    auto finish = [once](absl::StatusOr<rpc::Message> answer) {
      if (rpc::Callback callback = std::exchange(*once, nullptr)) callback(std::move(answer));
    };
    executor_->PostAfter(timeout_ms * 1000,
                         [finish] { finish(absl::DeadlineExceededError("late")); });
    executor_->PostAfter(delay_us_, [this, method, request, finish] {
      peer_->Handle(method, request, [this, finish](absl::StatusOr<rpc::Message> answer) {
        executor_->PostAfter(delay_us_, [finish, answer] { finish(answer); });
      });
    });
  }

 private:
  ManualExecutor* const executor_;
  const int64_t delay_us_;
  rpc::Handler* const peer_;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_RANK_TESTING_FAKE_NETWORK_H_
