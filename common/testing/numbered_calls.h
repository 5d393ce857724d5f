// Both ends of numbered calls, with a network between them that loses, repeats, delays and reorders
// messages. Tests use them to check that each call happens once, with its own payload and answer.
// None of these classes owns what it is given.

#ifndef SATRAP_COMMON_TESTING_NUMBERED_CALLS_H_
#define SATRAP_COMMON_TESTING_NUMBERED_CALLS_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "common/numeric/random.h"
#include "common/rpc/call_receiver.h"
#include "common/rpc/numbered_client.h"
#include "common/testing/manual_executor.h"
#include "gtest/gtest.h"
#include "proto/hot.pb.h"

namespace satrap::rpc {

inline constexpr Method kChange{"/satrap.Test/Change", true};
inline constexpr int64_t kSecondUs = 1000000;

// The calls 1 to `count`, with the payloads of each call and its answer.
struct Calls {
  size_t count = 0;
  std::function<Buffer(uint64_t number)> request, answer;
};

inline bool IsSame(const Buffer& a, const Buffer& b) {
  return a.size() == b.size() && std::equal(a.data(), a.data() + a.size(), b.data());
}

// Answers each call after a delay. The delay may be several times the receiver's hold_us, so that
// some attempts are answered WAIT.
class CountingReceiver final : public Handler {
 public:
  CountingReceiver(Calls calls, ManualExecutor* executor, SplitMix64* random, Keeping keeping)
      : runs(calls.count + 1),
        calls_(std::move(calls)),
        receiver_({"receiver", Envelope(), 1, 5 * kSecondUs, keeping}, executor),
        executor_(executor),
        random_(random) {}

  void Handle(const Method&, Message request, Callback respond) override {
    receiver_.Receive<AckHeader>(
        std::move(request), std::move(respond),
        [this](const PendingAnswer& call, const AckHeader& header, const Buffer& payload) {
          ASSERT_EQ(header.handle(), call.number) << "the header's own fields";
          ASSERT_TRUE(IsSame(payload, calls_.request(call.number)));
          ++runs[call.number];
          window = call.window;
          const int64_t work_us = random_->Below(10) == 0 ? random_->Below(20 * kSecondUs) : 1000;
          executor_->PostAfter(work_us, [this, call] {
            // As in a real header, the outcome comes first. The handle shows whose answer it is.
            NextBatchAnswerHeader header;
            header.set_outcome(OUTCOME_DONE);
            header.set_handle(call.number);
            call.Finish(Message{header.SerializeAsString(), calls_.answer(call.number)});
          });
        });
  }

  std::vector<int> runs;  // by number
  AnswerWindow* window = nullptr;

 private:
  const Calls calls_;
  CallReceiver receiver_;
  ManualExecutor* const executor_;
  SplitMix64* const random_;
};

class BadNetwork final : public Channel {
 public:
  struct Odds {
    std::vector<int> copies;    // of a request; each is as likely as the others, 0 loses it
    uint64_t lost_answers = 1;  // one answer in this many is lost
    uint64_t late = 1;          // one message in this many takes up to a minute
  };
  BadNetwork(Odds odds, ManualExecutor* executor, SplitMix64* random, Handler* handler)
      : odds_(std::move(odds)), executor_(executor), random_(random), handler_(handler) {}

  void Call(const Method& method, Message request, int64_t timeout_ms, Callback done) override {
    auto once = std::make_shared<Callback>(std::move(done));
    const auto end = [once](absl::StatusOr<Message> outcome) {
      if (*once != nullptr) std::exchange(*once, nullptr)(std::move(outcome));
    };
    executor_->PostAfter(timeout_ms * 1000, [end] { end(absl::DeadlineExceededError("timeout")); });
    for (int copies = odds_.copies[random_->Below(odds_.copies.size())]; copies > 0; --copies) {
      executor_->PostAfter(Delay(), [this, method, request, end] {
        handler_->Handle(method, request, [this, end](absl::StatusOr<Message> outcome) {
          if (random_->Below(odds_.lost_answers) == 0) return;
          executor_->PostAfter(Delay(), [end, outcome] { end(outcome); });
        });
      });
    }
  }

 private:
  // Mostly short, but sometimes longer than every timeout.
  int64_t Delay() {
    const bool is_late = random_->Below(odds_.late) == 0;
    return static_cast<int64_t>(random_->Below(is_late ? 60 * kSecondUs : 1000));
  }

  const Odds odds_;
  ManualExecutor* const executor_;
  SplitMix64* const random_;
  Handler* const handler_;
};

// Makes the calls, at most five at a time, however long the receiver is silent.
class PatientSender {
 public:
  PatientSender(Calls calls, ManualExecutor* executor, Channel* channel)
      : calls_(std::move(calls)),
        client_({kChange, Envelope(), 0, {.silence_timeout_ms = 3600 * 1000}}, executor,
                {{"receiver", channel}}) {}

  void StartMore() {
    while (started_ < calls_.count && started_ - answered < 5) {
      const uint64_t number = ++started_;
      AckHeader header;
      header.set_handle(number);
      client_.Call(0, {header.SerializeAsString(), calls_.request(number)},
                   [this, number](absl::StatusOr<Message> result) {
                     ASSERT_TRUE(result.ok()) << result.status();
                     NextBatchAnswerHeader answer;
                     ASSERT_TRUE(answer.ParseFromString(result->header));
                     ASSERT_EQ(answer.handle(), number);
                     ASSERT_TRUE(IsSame(result->payload, calls_.answer(number)));
                     ++answered;
                     StartMore();
                   });
    }
  }

  size_t answered = 0;

 private:
  const Calls calls_;
  NumberedClient client_;
  size_t started_ = 0;
};

}  // namespace satrap::rpc

#endif  // SATRAP_COMMON_TESTING_NUMBERED_CALLS_H_
