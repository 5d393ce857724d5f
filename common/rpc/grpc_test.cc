// Tests the channel and the server of real processes against each other, over real sockets.

#include <atomic>
#include <cstring>
#include <string>
#include <vector>

#include "common/rpc/grpc_testing.h"
#include "gtest/gtest.h"

namespace satrap::rpc {
namespace {

class GrpcTest : public SocketTest {};
INSTANTIATE_TEST_SUITE_P(Addresses, GrpcTest, testing::Bool(), SocketKind);

TEST_P(GrpcTest, CarriesHeadersAndPayloadsOfAllSizes) {
  const auto server = StartOrDie(Address(), &handler_);
  const auto channel = ChannelTo(server->address());
  for (const size_t size : {0, 1, 63, 64, 1000, 16384, 1 << 20, (5 << 20) + 13}) {
    const Buffer payload = Pattern(size);
    const auto answer = CallAndWait(channel.get(), kEcho, {"header", payload});
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_EQ(answer->header, "header");
    ASSERT_EQ(answer->payload.size(), size);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(answer->payload.data()) % kBufferAlignment, 0u);
    if (size > 0) {
      EXPECT_EQ(std::memcmp(answer->payload.data(), payload.data(), size), 0);
    }
  }
}

TEST_P(GrpcTest, CarriesPlainMessages) {
  const auto server = StartOrDie(Address(), &handler_);
  const auto channel = ChannelTo(server->address());
  EXPECT_EQ(CallAndWait(channel.get(), kPlain, {"abc", {}})->header, "abc");
  EXPECT_EQ(CallAndWait(channel.get(), kPlain, {"", {}})->header, "");
}

TEST_P(GrpcTest, ManyCallsAtOnceGetTheirOwnAnswers) {
  const auto server = StartOrDie(Address(), &handler_);
  const auto channel = ChannelTo(server->address());
  std::vector<Outcome> outcomes(200);
  for (size_t i = 0; i < outcomes.size(); ++i) {
    channel->Call(kEcho, {std::to_string(i), Pattern(i * 100)}, 20000, outcomes[i].callback());
  }
  for (size_t i = 0; i < outcomes.size(); ++i) {
    const auto answer = outcomes[i].Wait();
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_EQ(answer->header, std::to_string(i));
    EXPECT_EQ(answer->payload.size(), i * 100);
  }
}

TEST_P(GrpcTest, CarriesErrors) {
  const auto server = StartOrDie(Address(), &handler_);
  const auto channel = ChannelTo(server->address());
  EXPECT_EQ(CallAndWait(channel.get(), kEcho, {"fail", {}}).status(),
            absl::NotFoundError("no such part"));
  EXPECT_EQ(CallAndWait(channel.get(), kUnknown, {"x", {}}).status().code(),
            absl::StatusCode::kUnimplemented);
}

TEST_P(GrpcTest, AMessageOverTheLimitEndsItsCallOnly) {
  EndpointOptions small;
  small.max_message_bytes = 100000;
  const auto server = StartOrDie(Address(), &handler_, small);
  const auto channel = ChannelTo(server->address());
  EXPECT_EQ(CallAndWait(channel.get(), kEcho, {"x", Pattern(100001)}).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(CallAndWait(channel.get(), kEcho, {"x", Pattern(99000)}).ok());
}

TEST_P(GrpcTest, ACallWithoutAnAnswerEndsAtItsDeadline) {
  const auto server = StartOrDie(Address(), &handler_);
  const auto channel = ChannelTo(server->address());
  EXPECT_EQ(CallAndWait(channel.get(), kPark, {"x", {}}, 50).status().code(),
            absl::StatusCode::kDeadlineExceeded);
  // The answer comes too late and must be dropped.
  for (Callback& respond : handler_.TakeParked(1)) respond(Message());
  EXPECT_TRUE(CallAndWait(channel.get(), kEcho, {"x", {}}).ok());
}

TEST_P(GrpcTest, TheChannelsEndCancelsAndWaits) {
  const auto server = StartOrDie(Address(), &handler_);
  auto channel = ChannelTo(server->address());
  std::atomic<int> cancelled = 0;
  for (int i = 0; i < 10; ++i) {
    channel->Call(kPark, {"x", {}}, 20000, [&](absl::StatusOr<Message> result) {
      if (absl::IsCancelled(result.status())) ++cancelled;
    });
  }
  const auto parked = handler_.TakeParked(1);
  channel.reset();
  EXPECT_EQ(cancelled, 10);
}

TEST_P(GrpcTest, ACallMayComeBeforeItsServer) {
  std::string address = Address();
  if (!GetParam()) {
    address = StartOrDie(address, &handler_)->address();  // a port that was free just now
  }
  const auto channel = ChannelTo(address);
  Outcome outcome;
  channel->Call(kEcho, {"x", {}}, 20000, outcome.callback());
  const auto server = StartOrDie(address, &handler_);
  EXPECT_TRUE(outcome.Wait().ok());
}

TEST_P(GrpcTest, AChannelFindsItsServerAgain) {
  auto server = StartOrDie(Address(), &handler_);
  const std::string address = server->address();
  const auto channel = ChannelTo(address);
  EXPECT_TRUE(CallAndWait(channel.get(), kEcho, {"x", {}}).ok());
  server = nullptr;
  server = StartOrDie(address, &handler_);
  absl::StatusOr<Message> answer = CallAndWait(channel.get(), kEcho, {"x", {}});
  // One attempt may still fail because it uses the connection that was lost.
  if (absl::IsUnavailable(answer.status())) {
    answer = CallAndWait(channel.get(), kEcho, {"x", {}});
  }
  EXPECT_TRUE(answer.ok()) << answer.status();
}

}  // namespace
}  // namespace satrap::rpc
