#include "common/rpc/grpc_server.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "common/rpc/testing/grpc_testing.h"
#include "common/rpc/testing/stale_socket.h"
#include "gtest/gtest.h"

namespace satrap::rpc {
namespace {

class GrpcServerTest : public SocketTest {};
INSTANTIATE_TEST_SUITE_P(Addresses, GrpcServerTest, testing::Bool(), SocketKind);

TEST_P(GrpcServerTest, ADroppedCallbackIsAnsweredUnavailable) {
  const auto server = StartOrDie(Address(), &handler_);
  const auto channel = ChannelTo(server->address());
  EXPECT_EQ(CallAndWait(channel.get(), kEcho, {"drop", {}}).status().code(),
            absl::StatusCode::kUnavailable);
}

TEST_P(GrpcServerTest, AMalformedRequestIsRefused) {
  const auto server = StartOrDie(Address(), &handler_);
  const auto channel = ChannelTo(server->address());
  // A plain method with the path of kEcho, so that the bytes below are sent unchanged as the frame.
  const Method raw{kEcho.path, false};
  EXPECT_EQ(CallAndWait(channel.get(), raw, {"\x1a\x01x", {}}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_P(GrpcServerTest, ShutdownLetsCallsFinish) {
  const auto server = StartOrDie(Address(), &handler_);
  const auto channel = ChannelTo(server->address());
  Outcome outcome;
  channel->Call(kPark, {"x", {}}, 20000, outcome.callback());
  auto parked = handler_.TakeParked(1);
  std::thread stopping([&] { server->Shutdown(20000); });
  parked[0](Message{"in time", {}});
  stopping.join();
  EXPECT_EQ(outcome.Wait()->header, "in time");
}

TEST_P(GrpcServerTest, ShutdownNeverHangsOnParkedCalls) {
  const auto server = StartOrDie(Address(), &handler_);
  const auto channel = ChannelTo(server->address());
  std::vector<Outcome> outcomes(10);
  for (Outcome& outcome : outcomes) channel->Call(kPark, {"x", {}}, 20000, outcome.callback());
  auto parked = handler_.TakeParked(outcomes.size());
  server->Shutdown(20);
  for (Outcome& outcome : outcomes) {
    EXPECT_EQ(outcome.Wait().status().code(), absl::StatusCode::kUnavailable);
  }
  for (Callback& respond : parked) respond(Message());  // the answers are dropped
}

TEST_P(GrpcServerTest, ASecondServerAtTheSameAddressIsRefused) {
  auto server = StartOrDie(Address(), &handler_);
  const std::string address = server->address();
  const absl::Status second = StartStatus(address, &handler_);
  EXPECT_EQ(second.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(second.message().find(address), absl::string_view::npos) << second;
  EXPECT_TRUE(CallAndWait(ChannelTo(address).get(), kEcho, {"x", {}}).ok());
  server = nullptr;
  EXPECT_TRUE(StartStatus(address, &handler_).ok());
}

TEST_P(GrpcServerTest, AMethodHasOneHandler) {
  const GrpcServer::Service services[] = {{kMethods, &handler_}, {kMethods, &handler_}};
  EXPECT_EQ(GrpcServer::Start(Address(), {}, services).status(),
            absl::InvalidArgumentError("/satrap.Test/Echo is served twice"));
}

TEST(GrpcServerTestAddress, TcpPortZeroIsChosenByTheSystem) {
  TestHandler handler;
  const auto a = StartOrDie("127.0.0.1:0", &handler);
  const auto b = StartOrDie("127.0.0.1:0", &handler);
  EXPECT_NE(a->address(), b->address());
  EXPECT_EQ(a->address().rfind("127.0.0.1:", 0), 0u);
  EXPECT_NE(a->address(), "127.0.0.1:0");
}

TEST(GrpcServerTestAddress, AStaleSocketIsReplaced) {
  TempFolder folder;
  TestHandler handler;
  const std::string path = folder.path() + "/server";
  LeaveSocket(path);
  ASSERT_TRUE(std::filesystem::exists(path));
  const auto server = StartOrDie("unix:" + path, &handler);
  EXPECT_TRUE(CallAndWait(ChannelTo(server->address()).get(), kEcho, {"x", {}}).ok());
}

TEST(GrpcServerTestAddress, AFileThatIsNoSocketIsLeftAlone) {
  TempFolder folder;
  TestHandler handler;
  const std::string path = folder.path() + "/notes.txt";
  std::ofstream(path) << "precious";
  EXPECT_EQ(StartStatus("unix:" + path, &handler).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(std::filesystem::file_size(path), 8u);
}

TEST_P(GrpcServerTest, AnUnknownMethodIsNamed) {
  const auto server = StartOrDie(Address(), &handler_);
  EXPECT_EQ(CallAndWait(ChannelTo(server->address()).get(), kUnknown, {"x", {}}).status(),
            absl::UnimplementedError("nothing here serves /satrap.Test/Unknown"));
}

TEST_P(GrpcServerTest, AfterShutdownNoHandlerIsCalledAndTheAddressIsFree) {
  const auto server = StartOrDie(Address(), &handler_);
  const std::string address = server->address();
  const auto channel = ChannelTo(address);
  server->Shutdown(0);
  server->Shutdown(20000);  // has no effect
  EXPECT_EQ(server->address(), address);
  EXPECT_FALSE(CallAndWait(channel.get(), kEcho, {"x", {}}, 50).ok());
  EXPECT_TRUE(StartStatus(address, &handler_).ok());
}

TEST(GrpcServerAddressTest, ACallGoesToTheHandlerOfItsMethod) {
  TestHandler a;
  TestHandler b;
  constexpr Method kOne[] = {kEcho};
  constexpr Method kTwo[] = {kPark};
  const GrpcServer::Service services[] = {{kOne, &a}, {kTwo, &b}};
  auto server = GrpcServer::Start("127.0.0.1:0", {}, services);
  ASSERT_TRUE(server.ok()) << server.status();
  const auto channel = ChannelTo((*server)->address());
  Outcome outcome;
  channel->Call(kPark, {"x", {}}, 20000, outcome.callback());
  b.TakeParked(1)[0](Message{"from b", {}});
  EXPECT_EQ(outcome.Wait()->header, "from b");
  EXPECT_TRUE(CallAndWait(channel.get(), kEcho, {"x", {}}).ok());
}

TEST(GrpcServerAddressTest, AnAddressThatIsNotThisMachinesIsRefused) {
  TestHandler handler;
  // An address that no machine has: it is reserved for documentation (RFC 5737).
  const absl::Status status = StartStatus("192.0.2.1:0", &handler);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(status.message(),
            "cannot listen on 192.0.2.1:0: it is in use, or it is not an address of this machine");
}

}  // namespace
}  // namespace satrap::rpc
