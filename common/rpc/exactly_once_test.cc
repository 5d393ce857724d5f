// Runs a NumberedClient against a CallReceiver on a network that loses, repeats, delays and
// reorders messages: every call must happen once, with its payload, and get its own answer. It uses
// one thread, and a different seed for each schedule.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/numeric/random.h"
#include "common/rpc/call_receiver.h"
#include "common/rpc/numbered_client.h"
#include "common/testing/manual_executor.h"
#include "gtest/gtest.h"
#include "proto/hot.pb.h"

namespace satrap::rpc {
namespace {

constexpr Method kMethod{"/satrap.Test/Change", true};
constexpr size_t kCalls = 60;
constexpr size_t kMaxOpen = 5;
constexpr size_t kPayloadBytes = 100;

// Runs each admitted call after a random time, which may be several times hold_us.
class Receiver {
 public:
  Receiver(ManualExecutor* executor, SplitMix64* random)
      : receiver_({"receiver", Envelope(), 1, 5000000}, executor),
        executor_(executor),
        random_(random) {}

  void Handle(const Message& request, Callback respond) {
    receiver_.Receive<AckHeader>(
        request, std::move(respond),
        [this](const PendingAnswer& call, const AckHeader& header, const Buffer& payload) {
          ASSERT_EQ(header.handle(), call.number) << "the header's own fields";
          ASSERT_EQ(payload.size(), kPayloadBytes);
          const int64_t work_us = random_->Below(10) == 0 ? random_->Below(60000000) : 1000;
          executor_->PostAfter(work_us, [this, call] {
            ++runs_[call.number];
            // The outcome comes first, as in real headers. The handle shows to which call the
            // answer belongs.
            NextBatchAnswerHeader answer;
            answer.set_outcome(OUTCOME_DONE);
            answer.set_handle(call.number);
            window_ = call.window;
            call.Finish(MessageOf(answer));
          });
        });
  }

  std::vector<int> runs_ = std::vector<int>(kCalls + 1);
  AnswerWindow* window_ = nullptr;

 private:
  CallReceiver receiver_;
  ManualExecutor* const executor_;
  SplitMix64* const random_;
};

class BadNetwork final : public Channel {
 public:
  BadNetwork(ManualExecutor* executor, SplitMix64* random, Receiver* receiver)
      : executor_(executor), random_(random), receiver_(receiver) {}

  void Call(const Method&, Message request, int64_t timeout_ms, Callback done) override {
    auto once = std::make_shared<Callback>(std::move(done));
    const auto answer = [once](absl::StatusOr<Message> outcome) {
      if (*once != nullptr) std::exchange(*once, nullptr)(std::move(outcome));
    };
    executor_->PostAfter(timeout_ms * 1000,
                         [answer] { answer(absl::DeadlineExceededError("timeout")); });
    const uint64_t copies = random_->Below(4);  // 0: lost
    for (uint64_t i = 0; i < copies; ++i) {
      executor_->PostAfter(Delay(), [this, request, answer] {
        receiver_->Handle(request, [this, answer](absl::StatusOr<Message> outcome) {
          if (random_->Below(4) == 0) return;  // the answer is lost
          executor_->PostAfter(Delay(), [answer, outcome] { answer(outcome); });
        });
      });
    }
  }

 private:
  // The delay is mostly short, but sometimes longer than every timeout.
  int64_t Delay() {
    return static_cast<int64_t>(random_->Below(random_->Below(5) == 0 ? 60000000 : 1000));
  }

  ManualExecutor* const executor_;
  SplitMix64* const random_;
  Receiver* const receiver_;
};

class Sender {
 public:
  Sender(ManualExecutor* executor, Channel* channel)
      : client_({kMethod, Envelope(), 0, PatientTimeouts()}, executor, {{"receiver", channel}}) {}

  void StartMore() {
    while (started_ < kCalls && started_ - answered_ < kMaxOpen) {
      const uint64_t number = ++started_;
      AckHeader header;
      header.set_handle(number);
      client_.Call(0, {header.SerializeAsString(), Buffer(kPayloadBytes)},
                   [this, number](absl::StatusOr<Message> result) {
                     ASSERT_TRUE(result.ok()) << result.status();
                     NextBatchAnswerHeader answer;
                     ASSERT_TRUE(answer.ParseFromString(result->header));
                     ASSERT_EQ(answer.handle(), number);
                     ++answered_;
                     StartMore();
                   });
    }
  }

  size_t answered_ = 0;

 private:
  static RpcTimeouts PatientTimeouts() {
    RpcTimeouts timeouts;
    timeouts.silence_timeout_ms = 3600 * 1000;
    return timeouts;
  }

  NumberedClient client_;
  size_t started_ = 0;
};

TEST(ExactlyOnceTest, HoldsOnABadNetwork) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SplitMix64 random(seed);
    ManualExecutor executor;
    Receiver receiver(&executor, &random);
    BadNetwork network(&executor, &random, &receiver);
    Sender sender(&executor, &network);
    sender.StartMore();
    executor.AdvanceBy(int64_t{24} * 3600 * 1000000);
    ASSERT_EQ(sender.answered_, kCalls) << "seed " << seed;
    for (size_t number = 1; number <= kCalls; ++number) {
      ASSERT_EQ(receiver.runs_[number], 1) << "seed " << seed << " call " << number;
    }
    ASSERT_EQ(receiver.window_->num_running(), 0u);
    receiver.window_->Admit(kCalls + 1, kCalls + 1, [](auto) {});
    ASSERT_EQ(receiver.window_->num_kept(), 0u) << "the sender has closed all";
  }
}

}  // namespace
}  // namespace satrap::rpc
