// Numbered calls whose messages travel in chunks, from NumberedClient to CallReceiver: on a network
// that loses, repeats and delays chunks every call happens once, with its own payload and answer.
// And a message whose offsets need more than 32 bits. All of it in one thread, on a clock that only
// the test advances.

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "common/base/check.h"
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

// From none to several chunks.
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

// Answers each call once, after a time that may be longer than several holds.
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

// Loses a tenth of the requests and of the answers, brings a tenth of the requests twice, and delays
// some of both beyond every timeout.
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

// Both ends. `room_bytes`: for the incomplete messages of each.
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
    // Room for all, or for hardly more than the largest message.
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

// ---- beyond 4 GiB

// As many bytes of addresses as are asked for, all backed by the same 257 pages in turn. 2^32 is no
// multiple of their size, so a place that is wrong by 2^32 bytes has other bytes.
class RepeatedPages final : public BufferAllocator {
 public:
  RepeatedPages()
      : period_bytes_(257 * static_cast<size_t>(sysconf(_SC_PAGESIZE))),
        file_(memfd_create("pages", 0)) {
    CHECK(file_ >= 0 && ftruncate(file_, static_cast<off_t>(period_bytes_)) == 0);
  }
  ~RepeatedPages() override { close(file_); }

  uint8_t* Allocate(size_t size_bytes) override {
    const size_t bytes = RoundedUp(size_bytes);
    void* const all =
        mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(all != MAP_FAILED);
    for (size_t at = 0; at < bytes; at += period_bytes_) {
      void* const place = static_cast<uint8_t*>(all) + at;
      CHECK(mmap(place, period_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file_, 0) ==
            place);
    }
    return static_cast<uint8_t*>(all);
  }
  void Free(uint8_t* data, size_t size_bytes) override { munmap(data, RoundedUp(size_bytes)); }

  size_t period_bytes() const { return period_bytes_; }

 private:
  size_t RoundedUp(size_t bytes) const {
    return (bytes + period_bytes_ - 1) / period_bytes_ * period_bytes_;
  }

  const size_t period_bytes_;
  const int file_;
};

// Brings each call in a task of its own, so that thousands of chunks do not deepen the stack.
class TaskChannel final : public Channel {
 public:
  TaskChannel(ManualExecutor* executor, Handler* handler)
      : executor_(executor), handler_(handler) {}

  void Call(const Method& method, Message request, int64_t, Callback done) override {
    executor_->Post([this, method, request = std::move(request), done = std::move(done)]() mutable {
      handler_->Handle(method, std::move(request), std::move(done));
    });
  }

 private:
  ManualExecutor* const executor_;
  Handler* const handler_;
};

class TakesOne final : public Handler {
 public:
  void Handle(const Method&, Message request, Callback respond) override {
    taken = std::move(request);
    respond(Message{"taken", Buffer()});
  }
  Message taken;
};

TEST(LargeOffsetTest, ARequestBeyond4GiBComesWhole) {
  constexpr size_t kBytes = (size_t{1} << 32) + (size_t{3} << 20) + 12345;
  const auto pages = std::make_shared<RepeatedPages>();
  const auto pages_of_receiver = std::make_shared<RepeatedPages>();
  ManualExecutor executor;
  TakesOne receiver;
  ChunkedHandler::Options served;
  served.limits.max_message_bytes = (int64_t{1} << 16) + kChunkOverheadBytes;
  served.memory = std::make_shared<ChunkMemory>(kLargestMessageBytes, kSecondUs);
  served.deadline_us = kSecondUs;
  served.payload_allocator = pages_of_receiver;
  ChunkedHandler handler(&receiver, kMethods, &executor, served);
  ChunkedChannel::Options options;
  options.limits = served.limits;
  options.memory = served.memory;
  options.clock = &executor;
  ChunkedChannel channel(std::make_unique<TaskChannel>(&executor, &handler), options);

  // Writes the repeated pages only once. The last bytes of the message are in the same pages as its
  // first, so each page must hold the same at the end.
  Message request{"header", Buffer(kBytes, pages)};
  SplitMix64 random(1);
  for (size_t i = 0; i + 8 <= pages->period_bytes(); i += 8) {
    const uint64_t bits = random.Next();
    std::memcpy(request.payload.mutable_data() + i, &bits, sizeof(bits));
  }
  const Buffer sent = request.payload;
  absl::StatusOr<Message> answer = absl::UnknownError("not answered");
  channel.Call(kChange, std::move(request), 1000,
               [&answer](absl::StatusOr<Message> result) { answer = std::move(result); });
  executor.RunReady();
  ASSERT_TRUE(answer.ok()) << answer.status();
  ASSERT_EQ(receiver.taken.payload.size(), kBytes);
  EXPECT_EQ(std::memcmp(receiver.taken.payload.data(), sent.data(), pages->period_bytes()), 0);
}

}  // namespace
}  // namespace satrap::rpc
