// Tests numbered calls whose messages travel in chunks, from NumberedClient to CallReceiver: on a
// network that loses, repeats and delays chunks every call happens once, with its own payload and
// answer. Everything runs in one thread, on a clock that only the test advances.

#include <memory>
#include <utility>

#include "common/chunk/chunked_channel.h"
#include "common/chunk/chunked_handler.h"
#include "common/testing/numbered_calls.h"

namespace satrap::rpc {
namespace {

constexpr Method kMethods[] = {kChange};
constexpr size_t kCalls = 40;
constexpr int64_t kFrameBytes = 300 + kChunkOverheadBytes;

// Messages of some of these sizes fit in one frame; others need several chunks.
size_t SizeOf(uint64_t number) { return number * number * 131 % 2500; }

// Different bytes for each number.
Buffer Bytes(uint64_t number, size_t size_bytes) {
  Buffer payload(size_bytes);
  for (size_t i = 0; i < size_bytes; ++i) {
    payload.mutable_data()[i] = static_cast<uint8_t>(number * 37 + i * 31 + i / 7);
  }
  return payload;
}
const Calls kAll = {kCalls, [](uint64_t number) { return Bytes(number, SizeOf(number)); },
                    [](uint64_t number) { return Bytes(~number, SizeOf(kCalls + 1 - number)); }};

// Loses a tenth of the requests and of the answers, and delivers a tenth of the requests twice.
const BadNetwork::Odds kOdds = {{0, 2, 1, 1, 1, 1, 1, 1, 1, 1}, 10, 20};

// The sender, the receiver and the network between them. `room_bytes` is the room for incomplete
// messages that each of the two ends has.
struct World {
  World(uint64_t seed, Keeping keeping, int64_t room_bytes)
      : random(seed),
        receiver(kAll, &executor, &random, keeping),
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
        std::make_unique<BadNetwork>(kOdds, &executor, &random, handler.get()), options);
    sender = std::make_unique<PatientSender>(kAll, &executor, channel.get());
  }

  ManualExecutor executor;
  SplitMix64 random;
  CountingReceiver receiver;
  const std::shared_ptr<ChunkMemory> room_of_receiver;
  const std::shared_ptr<ChunkMemory> room_of_sender;
  std::unique_ptr<ChunkedHandler> handler;
  std::unique_ptr<ChunkedChannel> channel;
  std::unique_ptr<PatientSender> sender;
};

class ChunkedCallTest : public testing::TestWithParam<Keeping> {};

INSTANTIATE_TEST_SUITE_P(Keeping, ChunkedCallTest,
                         testing::Values(Keeping::kUntilClosed, Keeping::kUntilDelivered));

TEST_P(ChunkedCallTest, HappensWithItsOwnPayloadAndAnswerOnABadNetwork) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    // There is room for all messages, or for hardly more than the largest one.
    World world(seed, GetParam(), seed % 2 == 0 ? 100000 : 3500);
    world.sender->StartMore();
    world.executor.AdvanceBy(24 * 3600 * kSecondUs);
    ASSERT_EQ(world.sender->answered, kCalls) << "seed " << seed;
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
