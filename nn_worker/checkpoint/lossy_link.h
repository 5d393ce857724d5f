// A connection for tests that delays, loses and repeats messages.

#ifndef SATRAP_NN_WORKER_CHECKPOINT_LOSSY_LINK_H_
#define SATRAP_NN_WORKER_CHECKPOINT_LOSSY_LINK_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "common/numeric/random.h"
#include "common/rpc/rpc.h"
#include "common/testing/manual_executor.h"

namespace satrap {

// Loses and repeats messages with probability `*loss`; if `*loss` is positive, delays them, too.
// Nothing is owned.
class LossyLink final : public rpc::Channel {
 public:
  LossyLink(ManualExecutor* executor, rpc::Handler* peer, const double* loss)
      : executor_(executor), peer_(peer), loss_(loss) {}

  void Call(const rpc::Method& method, rpc::Message request, int64_t timeout_ms,
            rpc::Callback done) override {
    auto once = std::make_shared<rpc::Callback>(std::move(done));
    auto finish = [once](absl::StatusOr<rpc::Message> answer) {
      if (rpc::Callback callback = std::exchange(*once, nullptr)) callback(std::move(answer));
    };
    executor_->PostAfter(timeout_ms * 1000,
                         [finish] { finish(absl::DeadlineExceededError("late")); });
    for (int copies = Happens() ? 2 : 1; copies > 0; --copies) {
      if (Happens()) continue;
      executor_->PostAfter(DelayUs(), [this, method, request, finish] {
        peer_->Handle(method, request, [this, finish](absl::StatusOr<rpc::Message> answer) {
          if (Happens()) return;
          executor_->PostAfter(DelayUs(), [finish, answer] { finish(answer); });
        });
      });
    }
  }

 private:
  bool Happens() { return random_.NextDouble() < *loss_; }
  int64_t DelayUs() { return *loss_ > 0 ? static_cast<int64_t>(random_.Below(40000)) : 0; }

  ManualExecutor* const executor_;
  rpc::Handler* const peer_;
  const double* const loss_;
  SplitMix64 random_{1};
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_CHECKPOINT_LOSSY_LINK_H_
