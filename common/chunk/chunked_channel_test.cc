#include "common/chunk/chunked_channel.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/optional.h"
#include "common/chunk/chunked_handler.h"
#include "common/rpc/frame.h"
#include "common/rpc/sign_of_life.h"
#include "common/testing/manual_executor.h"
#include "gtest/gtest.h"

namespace satrap::rpc {
namespace {

constexpr Method kEcho{"/satrap.Test/Echo", true};
constexpr Method kPlain{"/satrap.Test/Plain", false};
constexpr Method kMethods[] = {kEcho, kPlain};
constexpr int64_t kFrameBytes = 100 + kChunkOverheadBytes;

Buffer Bytes(size_t size) {
  Buffer buffer(size);
  for (size_t i = 0; i < size; ++i) buffer.mutable_data()[i] = static_cast<uint8_t>(i * 31 + i / 7);
  return buffer;
}
bool Equal(const Buffer& a, const Buffer& b) {
  return a.size() == b.size() && std::equal(a.data(), a.data() + a.size(), b.data());
}

class Echo final : public Handler {
 public:
  void Handle(const Method&, Message request, Callback respond) override {
    ++calls;
    if (answer_bytes > 0) request.payload = Bytes(answer_bytes);
    respond(std::move(request));
  }
  int calls = 0;
  size_t answer_bytes = 0;  // 0: the answer is the request
};

// Passes calls directly to a handler, except those that the test wants to be lost.
class DirectChannel final : public Channel {
 public:
  explicit DirectChannel(Handler* handler) : handler_(handler) {}

  void Call(const Method& method, Message request, int64_t timeout_ms, Callback done) override {
    sent.push_back(method);
    timeouts_ms.push_back(timeout_ms);
    EXPECT_TRUE(CheckFrameSize("request of", method, request, kFrameBytes).ok());
    const absl::Status lost = lose ? lose(sent.size()) : absl::OkStatus();
    if (!lost.ok()) return done(lost);
    if (answer.has_value()) return done(*answer);
    handler_->Handle(method, std::move(request),
                     [done = std::move(done)](absl::StatusOr<Message> answer) mutable {
                       if (answer.ok()) {
                         EXPECT_TRUE(CheckFrameSize("answer", kEcho, *answer, kFrameBytes).ok());
                       }
                       done(std::move(answer));
                     });
  }

  std::vector<Method> sent;
  std::vector<int64_t> timeouts_ms;
  std::function<absl::Status(size_t)> lose;  // of call number n, from 1
  absl::optional<Message> answer;            // instead of the handler's

 private:
  Handler* const handler_;
};

class ChunkedChannelTest : public testing::Test {
 protected:
  ChunkedChannelTest() {
    ChunkedHandler::Options served;
    served.limits = {kFrameBytes, 2000};
    served.memory = memory_of_peer_;
    served.deadline_us = 1000;
    handler_ = std::make_unique<ChunkedHandler>(&echo_, kMethods, &executor_, served);
    auto direct = std::make_unique<DirectChannel>(handler_.get());
    wire_ = direct.get();
    ChunkedChannel::Options options;
    options.limits = {kFrameBytes, 2000};
    options.memory = memory_;
    options.clock = &executor_;
    channel_ = std::make_unique<ChunkedChannel>(std::move(direct), options);
  }

  absl::StatusOr<Message> Call(Message request, const Method& method = kEcho,
                               int64_t timeout_ms = 10000) {
    absl::StatusOr<Message> result = absl::UnknownError("not answered");
    channel_->Call(method, std::move(request), timeout_ms,
                   [&result](absl::StatusOr<Message> answer) { result = std::move(answer); });
    return result;
  }

  ManualExecutor executor_;
  Echo echo_;
  const std::shared_ptr<ChunkMemory> memory_of_peer_ = std::make_shared<ChunkMemory>(4000, 1000);
  const std::shared_ptr<ChunkMemory> memory_ = std::make_shared<ChunkMemory>(1500, 1000);
  std::unique_ptr<ChunkedHandler> handler_;
  std::unique_ptr<ChunkedChannel> channel_;
  DirectChannel* wire_ = nullptr;
};

TEST_F(ChunkedChannelTest, AMessageThatFitsGoesAsItIs) {
  const auto answer = Call({"header", Bytes(100)});
  ASSERT_TRUE(answer.ok());
  EXPECT_TRUE(Equal(answer->payload, Bytes(100)));
  ASSERT_EQ(wire_->sent.size(), 1u);
  EXPECT_TRUE(wire_->sent[0] == kEcho);
  EXPECT_EQ(wire_->timeouts_ms[0], 10000);
  EXPECT_TRUE(Call({"header", Buffer()}, kPlain).ok());
}

TEST_F(ChunkedChannelTest, ALargeRequestAndItsLargeAnswerComeWhole) {
  const std::string header(300, 'h');
  for (const size_t bytes : {0, 1, 99, 200, 1000}) {
    const auto answer = Call({header, Bytes(bytes)});
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_EQ(answer->header, header);
    EXPECT_TRUE(Equal(answer->payload, Bytes(bytes))) << bytes;
  }
  EXPECT_EQ(echo_.calls, 5);
  EXPECT_EQ(handler_->num_held_answers(), 0u);
  EXPECT_EQ(handler_->num_incomplete_requests(), 0u);
  EXPECT_EQ(memory_->taken_bytes(), 0);
  EXPECT_EQ(memory_of_peer_->taken_bytes(), 0);
}

TEST_F(ChunkedChannelTest, ASmallRequestMayHaveALargeAnswer) {
  echo_.answer_bytes = 1000;
  const auto answer = Call({"header", Buffer()});
  ASSERT_TRUE(answer.ok());
  EXPECT_TRUE(Equal(answer->payload, Bytes(1000)));
  EXPECT_TRUE(wire_->sent.back() == kFetchChunk);
}

TEST_F(ChunkedChannelTest, AChunkThatIsLostIsSentOrAskedForAgain) {
  const Message request{"header", Bytes(300)};
  ASSERT_TRUE(Call(request).ok());
  const size_t calls = wire_->sent.size();
  ASSERT_GT(calls, 5u);
  for (size_t lost = 2; lost <= calls; ++lost) {
    wire_->sent.clear();
    wire_->lose = [lost](size_t call) {
      return call == lost       ? absl::DeadlineExceededError("no answer")
             : call == lost + 1 ? absl::UnavailableError("the connection broke")
                                : absl::OkStatus();
    };
    const auto answer = Call(request);
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_TRUE(Equal(answer->payload, request.payload));
    EXPECT_EQ(wire_->sent.size(), calls + 2);
  }
}

// The peer has the chunk, so sending it again would gain nothing and would hide that the peer is
// alive.
TEST_F(ChunkedChannelTest, AChunkWhoseAnswerHasBegunToArriveIsNotSentAgain) {
  wire_->lose = [](size_t n) {
    return n == 3 ? MarkAnswerBegun(absl::DeadlineExceededError("slow")) : absl::OkStatus();
  };
  const absl::Status status = Call({"header", Bytes(250)}).status();
  EXPECT_TRUE(AnswerHadBegun(status)) << status;
  EXPECT_EQ(wire_->sent.size(), 3u);
}

// If any chunk is lost in all its tries, the attempt fails, but the next attempt succeeds.
TEST_F(ChunkedChannelTest, AnAttemptEndsWithALossAndTheNextOneIsWhole) {
  const Message request{"header", Bytes(300)};
  ASSERT_TRUE(Call(request).ok());
  const size_t calls = wire_->sent.size();
  for (size_t lost = 1; lost <= calls; ++lost) {
    wire_->sent.clear();
    wire_->lose = [lost](size_t call) {
      return call >= lost ? absl::DeadlineExceededError("no answer") : absl::OkStatus();
    };
    const absl::Status status = Call(request).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
    EXPECT_EQ(AnswerHadBegun(status), lost > 1) << "a chunk that has arrived is a sign of life";
    EXPECT_EQ(wire_->sent.size(), lost == 1 ? 1 : lost + 2)
        << "a peer that is away is not asked on";
    wire_->lose = nullptr;
    const auto repeated = Call(request);
    ASSERT_TRUE(repeated.ok()) << repeated.status();
    EXPECT_TRUE(Equal(repeated->payload, request.payload));
  }
  EXPECT_EQ(memory_->taken_bytes(), 0);
}

TEST_F(ChunkedChannelTest, ATransferThatThePeerHasGivenUpIsRepeated) {
  wire_->lose = [this](size_t call) {
    if (call == 3) executor_.AdvanceBy(1000);
    return absl::OkStatus();
  };
  const absl::Status status = Call({"header", Bytes(300)}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(SignOfLifeAgoUs(status), 0) << "the peer has just answered";
  EXPECT_FALSE(AnswerHadBegun(status)) << "more time would gain nothing";
}

TEST_F(ChunkedChannelTest, AChunkThatArrivedIsASignOfLifeFromThenOn) {
  for (const bool timeout : {false, true}) {
    // Call 3 sends a chunk of the request; call 6 asks for a chunk of the answer.
    for (const size_t first_lost : {3, 6}) {
      wire_->sent.clear();
      wire_->lose = [&](size_t call) {
        if (call < first_lost) return absl::OkStatus();
        executor_.AdvanceBy(100);
        return timeout ? absl::DeadlineExceededError("late") : absl::UnavailableError("broken");
      };
      const absl::Status status = Call({"header", Bytes(300)}).status();
      EXPECT_EQ(wire_->sent.size(), first_lost + 2);
      EXPECT_EQ(SignOfLifeAgoUs(status), 300) << status;
      EXPECT_EQ(AnswerHadBegun(status), timeout) << "only then would more time help";
    }
  }
  wire_->lose = [](size_t) { return absl::UnavailableError("gone"); };
  EXPECT_EQ(SignOfLifeAgoUs(Call({"header", Bytes(300)}).status()), absl::nullopt);
}

TEST_F(ChunkedChannelTest, AnAnswerWhoseSizesOverflowIsRefused) {
  ChunkNote note;
  note.set_state(ChunkNote::FOLLOWS);
  note.set_header_bytes(3);
  note.set_payload_bytes(~uint64_t{0} - 1);
  wire_->answer = Message{note.SerializeAsString(), Bytes(1)};
  const absl::Status status = Call({"header", Buffer()}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_EQ(memory_->taken_bytes(), 0);
}

TEST_F(ChunkedChannelTest, AnErrorOfTheCallIsItsResult) {
  wire_->lose = [this](size_t) {
    return wire_->sent.size() == 4 ? absl::NotFoundError("no such part") : absl::OkStatus();
  };
  EXPECT_EQ(Call({"header", Bytes(300)}).status().message(), "no such part");
}

TEST_F(ChunkedChannelTest, WithoutRoomTheAttemptIsRepeatedLater) {
  const ChunkMemory::Share most = ChunkMemory::Take(memory_of_peer_, 3800, {});
  const absl::Status at_peer = Call({"header", Bytes(300)}).status();
  const ChunkMemory::Share own = ChunkMemory::Take(memory_, 1400, {});
  echo_.answer_bytes = 500;
  const absl::Status here = Call({"header", Buffer()}).status();
  for (const absl::Status& status : {at_peer, here}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    EXPECT_EQ(SignOfLifeAgoUs(status), 0) << status;
    EXPECT_FALSE(AnswerHadBegun(status)) << "the attempt was not too short: " << status;
  }
}

TEST_F(ChunkedChannelTest, AMessageBeyondTheBoundIsRefusedBeforeItIsSent) {
  const absl::Status status = Call({"header", Bytes(1995)}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(
      status.message(),
      "request of /satrap.Test/Echo has 2001 bytes, but a message can have at most 2000: raise "
      "nn_worker.replicas, or lower global_batch_size");
  EXPECT_TRUE(wire_->sent.empty());
}

// A chunk's timeout is that of an attempt whose payload has the size of the chunk.
TEST_F(ChunkedChannelTest, AChunkHasTheTimeOfAnAttemptOfItsSize) {
  ASSERT_TRUE(Call({"header", Bytes(1000)}, kEcho, 10000).ok());
  for (const int64_t timeout_ms : wire_->timeouts_ms) EXPECT_EQ(timeout_ms, 10000);
}

}  // namespace
}  // namespace satrap::rpc
