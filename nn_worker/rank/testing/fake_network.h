// A network for tests of RankEngines that delays messages by times drawn from a seed. A network
// that also loses and repeats messages is in tests/simulation.

#ifndef SATRAP_NN_WORKER_RANK_TESTING_FAKE_NETWORK_H_
#define SATRAP_NN_WORKER_RANK_TESTING_FAKE_NETWORK_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "common/numeric/random.h"
#include "common/rpc/rpc.h"
#include "common/testing/manual_executor.h"

namespace satrap {

struct FakeNetwork {
  uint64_t seed = 1;
  int64_t max_delay_us = 0;
};

// Draws the delays of one cluster's messages.
class FakeChance {
 public:
  explicit FakeChance(const FakeNetwork& network) : network_(network), random_(network.seed) {}

  int64_t DelayUs() {
    if (network_.max_delay_us == 0) return 0;
    return static_cast<int64_t>(random_.Below(network_.max_delay_us));
  }

 private:
  const FakeNetwork network_;
  SplitMix64 random_;
};

// The connection of one rank to one peer. Nothing is owned.
class FakeLink final : public rpc::Channel {
 public:
  FakeLink(ManualExecutor* executor, FakeChance* chance, rpc::Handler* peer)
      : executor_(executor), chance_(chance), peer_(peer) {}

  void Call(const rpc::Method& method, rpc::Message request, int64_t timeout_ms,
            rpc::Callback done) override {
    auto once = std::make_shared<rpc::Callback>(std::move(done));
    auto finish = [once](absl::StatusOr<rpc::Message> answer) {
      if (rpc::Callback callback = std::exchange(*once, nullptr)) callback(std::move(answer));
    };
    executor_->PostAfter(timeout_ms * 1000,
                         [finish] { finish(absl::DeadlineExceededError("late")); });
    executor_->PostAfter(chance_->DelayUs(), [this, method, request, finish] {
      peer_->Handle(method, request, [this, finish](absl::StatusOr<rpc::Message> answer) {
        executor_->PostAfter(chance_->DelayUs(), [finish, answer] { finish(answer); });
      });
    });
  }

 private:
  ManualExecutor* const executor_;
  FakeChance* const chance_;
  rpc::Handler* const peer_;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_RANK_TESTING_FAKE_NETWORK_H_
