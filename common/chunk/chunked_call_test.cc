// Tests numbered calls whose messages travel in chunks, from NumberedClient to CallReceiver: on a
// network that loses, repeats and delays chunks every call happens once, with its own payload and
// answer. Everything runs in one thread, on a clock that only the test advances.

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "common/chunk/chunked_channel.h"
#include "common/chunk/chunked_handler.h"
#include "common/numeric/random.h"
#include "common/rpc/call_receiver.h"
#include "common/rpc/header.h"
#include "common/rpc/numbered_client.h"
#include "common/testing/manual_executor.h"
#include "gtest/gtest.h"
#include "proto/hot.pb.h"

namespace satrap::rpc {
namespace {

constexpr Method kChange{"/satrap.Test/Change", true};
constexpr Method kMethods[] = {kChange};
constexpr size_t kCalls = 40;
constexpr size_t kMaxOpen = 5;
constexpr int64_t kFrameBytes = 300 + kChunkOverheadBytes;
constexpr int64_t kSecondUs = 1000000;

// Sizes for which a message has no payload, fits in one frame, or needs several chunks.
size_t SizeOf(uint64_t number) { return number * number * 131 % 2500; }

// Different bytes for each number.
Buffer PayloadOf(uint64_t number, size_t size_bytes) {
  Buffer payload(size_bytes);
  for (size_t i = 0; i < size_bytes; ++i) {
    payload.mutable_data()[i] = static_cast<uint8_t>(number * 37 + i * 31 + i / 7);
  }
  return payload;
}
bool Equal(const Buffer& a, const Buffer& b) {
  return a.size() == b.size() && std::equal(a.data(), a.data() + a.size(), b.data());
}

// Answers each call once. Some answers take longer than several times hold_us (answer_window.h).
class Receiver final : public Handler {
 public:
  Receiver(ManualExecutor* executor, SplitMix64* random, Keeping keeping)
      : receiver_({"receiver", Envelope(), 1, 5 * kSecondUs, keeping}, executor),
        executor_(executor),
        random_(random) {}

  void Handle(const Method&, Message request, Callback respond) override {
    receiver_.Receive<AckHeader>(
        std::move(request), std::move(respond),
        [this](const PendingAnswer& call, const AckHeader& header, const Buffer& payload) {
          ASSERT_EQ(header.handle(), call.number) << "the header's own fields";
          ASSERT_TRUE(Equal(payload, PayloadOf(call.number, SizeOf(call.number))));
          ++runs[call.number];
          const int64_t work_us = random_->Below(10) == 0 ? random_->Below(20 * kSecondUs) : 1000;
          executor_->PostAfter(work_us, [call] {
            NextBatchAnswerHeader answer;
            answer.set_outcome(OUTCOME_DONE);
            answer.set_handle(call.number);
            Message message = MessageOf(answer);
            message.payload = PayloadOf(~call.number, SizeOf(kCalls + 1 - call.number));
            call.Finish(std::move(message));
          });
        });
  }

  std::vector<int> runs = std::vector<int>(kCalls + 1);

 private:
  CallReceiver receiver_;
  ManualExecutor* const executor_;
  SplitMix64* const random_;
};

// Loses a tenth of the requests and of the answers, delivers a tenth of the requests twice, and
// delays some of both beyond every timeout.
class BadNetwork final : public Channel {
 public:
  BadNetwork(ManualExecutor* executor, SplitMix64* random, Handler* handler)
      : executor_(executor), random_(random), handler_(handler) {}

  void Call(const Method& method, Message request, int64_t timeout_ms, Callback done) override {
    auto once = std::make_shared<Callback>(std::move(done));
    const auto end = [once](absl::StatusOr<Message> outcome) {
      if (*once != nullptr) std::exchange(*once, nullptr)(std::move(outcome));
    };
    executor_->PostAfter(timeout_ms * 1000, [end] { end(absl::DeadlineExceededError("timeout")); });
    const uint64_t drawn = random_->Below(10);
    const int copies = drawn == 0 ? 0 : drawn == 1 ? 2 : 1;
    for (int i = 0; i < copies; ++i) {
      executor_->PostAfter(Delay(), [this, method, request, end] {
        handler_->Handle(method, request, [this, end](absl::StatusOr<Message> outcome) {
          if (random_->Below(10) == 0) return;
          executor_->PostAfter(Delay(), [end, outcome] { end(outcome); });
        });
      });
    }
  }

 private:
  int64_t Delay() { return static_cast<int64_t>(random_->Below(Late() ? 60 * kSecondUs : 1000)); }
  bool Late() { return random_->Below(20) == 0; }

  ManualExecutor* const executor_;
  SplitMix64* const random_;
  Handler* const handler_;
};

// The sender, the receiver and the network between them. `room_bytes` is the room for incomplete
// messages that each of the two ends has.
struct World {
  World(uint64_t seed, Keeping keeping, int64_t room_bytes)
      : random(seed),
        receiver(&executor, &random, keeping),
        room_of_receiver(std::make_shared<ChunkMemory>(room_bytes, 40 * kSecondUs)),
        room_of_sender(std::make_shared<ChunkMemory>(room_bytes, 40 * kSecondUs)) {
    ChunkedHandler::Options served;
    served.limits = {kFrameBytes, 3000};
    served.name = "receiver";
    served.memory = room_of_receiver;
    served.answer_bytes = room_bytes;
    served.deadline_us = 40 * kSecondUs;
    served.first_transfer = ~uint64_t{0} - 5;
    handler = std::make_unique<ChunkedHandler>(&receiver, kMethods, &executor, served);
    ChunkedChannel::Options options;
    options.limits = served.limits;
    options.memory = room_of_sender;
    options.first_transfer = ~uint64_t{0} - 20;  // numbers wrap
    options.clock = &executor;
    channel = std::make_unique<ChunkedChannel>(
        std::make_unique<BadNetwork>(&executor, &random, handler.get()), options);
    RpcTimeouts timeouts;
    timeouts.silence_timeout_ms = 3600 * 1000;
    client =
        std::make_unique<NumberedClient>(NumberedClient::Options{kChange, Envelope(), 0, timeouts},
                                         &executor, std::vector<Peer>{{"receiver", channel.get()}});
  }

  void StartMore() {
    while (started < kCalls && started - answered < kMaxOpen) {
      const uint64_t number = ++started;
      AckHeader header;
      header.set_handle(number);
      client->Call(
          0, {header.SerializeAsString(), PayloadOf(number, SizeOf(number))},
          [this, number](absl::StatusOr<Message> result) {
            ASSERT_TRUE(result.ok()) << result.status();
            NextBatchAnswerHeader answer;
            ASSERT_TRUE(answer.ParseFromString(result->header));
            ASSERT_EQ(answer.handle(), number);
            ASSERT_TRUE(Equal(result->payload, PayloadOf(~number, SizeOf(kCalls + 1 - number))));
            ++answered;
            StartMore();
          });
    }
  }

  ManualExecutor executor;
  SplitMix64 random;
  Receiver receiver;
  const std::shared_ptr<ChunkMemory> room_of_receiver;
  const std::shared_ptr<ChunkMemory> room_of_sender;
  std::unique_ptr<ChunkedHandler> handler;
  std::unique_ptr<ChunkedChannel> channel;
  std::unique_ptr<NumberedClient> client;
  size_t started = 0;
  size_t answered = 0;
};

class ChunkedCallTest : public testing::TestWithParam<Keeping> {};

INSTANTIATE_TEST_SUITE_P(Keeping, ChunkedCallTest,
                         testing::Values(Keeping::kUntilClosed, Keeping::kUntilDelivered));

TEST_P(ChunkedCallTest, HappensWithItsOwnPayloadAndAnswerOnABadNetwork) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    // There is room for all messages, or for hardly more than the largest one.
    World world(seed, GetParam(), seed % 2 == 0 ? 100000 : 3500);
    world.StartMore();
    world.executor.AdvanceBy(int64_t{24} * 3600 * kSecondUs);
    ASSERT_EQ(world.answered, kCalls) << "seed " << seed;
    for (size_t number = 1; number <= kCalls; ++number) {
      if (GetParam() == Keeping::kUntilClosed) {
        ASSERT_EQ(world.receiver.runs[number], 1) << "seed " << seed << " call " << number;
      } else {
        ASSERT_GE(world.receiver.runs[number], 1) << "seed " << seed << " call " << number;
      }
    }
    ASSERT_EQ(world.handler->num_incomplete_requests(), 0u);
    ASSERT_EQ(world.handler->num_held_answers(), 0u);
    ASSERT_EQ(world.room_of_receiver->taken_bytes(), 0);
    ASSERT_EQ(world.room_of_sender->taken_bytes(), 0);
  }
}

}  // namespace
}  // namespace satrap::rpc
