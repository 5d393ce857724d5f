// The channel and the server of real processes against each other, over real sockets.

#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/check.h"
#include "common/mutex.h"
#include "common/rpc/grpc_channel.h"
#include "common/rpc/grpc_server.h"
#include "gtest/gtest.h"

namespace satrap::rpc {
namespace {

constexpr Method kEcho{"/satrap.Test/Echo", true};
constexpr Method kPlain{"/satrap.Test/Plain", false};
constexpr Method kPark{"/satrap.Test/Park", true};
constexpr Method kUnknown{"/satrap.Test/Unknown", true};
constexpr Method kMethods[] = {kEcho, kPlain, kPark};

class TempFolder {
 public:
  TempFolder() {
    std::string pattern = std::filesystem::temp_directory_path() / "satrap_test_XXXXXX";
    path_ = ::mkdtemp(pattern.data());
  }
  ~TempFolder() { std::filesystem::remove_all(path_); }
  std::string SocketAddress(const std::string& name) const { return "unix:" + path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Echoes; keeps the callbacks of Park.
class TestHandler final : public Handler {
 public:
  void Handle(const Method& method, Message request, Callback respond) override {
    if (method == kPark) {
      MutexLock lock(&mutex_);
      parked_.push_back(std::move(respond));
      changed_.NotifyAll();
      return;
    }
    if (request.header == "fail") return respond(absl::NotFoundError("no such part"));
    if (request.header == "drop") return;
    respond(std::move(request));
  }

  std::vector<Callback> TakeParked(size_t count) {
    MutexLock lock(&mutex_);
    while (parked_.size() < count) changed_.Wait(&mutex_);
    return std::exchange(parked_, {});
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::vector<Callback> parked_ GUARDED_BY(mutex_);
};

// The outcome of one call, to wait for.
class Outcome {
 public:
  Callback callback() {
    return [this](absl::StatusOr<Message> result) {
      MutexLock lock(&mutex_);
      result_ = std::move(result);
      done_ = true;
      changed_.NotifyAll();
    };
  }
  absl::StatusOr<Message> Wait() {
    MutexLock lock(&mutex_);
    while (!done_) changed_.Wait(&mutex_);
    return result_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  bool done_ GUARDED_BY(mutex_) = false;
  absl::StatusOr<Message> result_ GUARDED_BY(mutex_);
};

Buffer Pattern(size_t size) {
  Buffer buffer(size);
  for (size_t i = 0; i < size; ++i) buffer.mutable_data()[i] = static_cast<uint8_t>(i * 31 + i / 7);
  return buffer;
}

std::unique_ptr<GrpcServer> StartOrDie(const std::string& address, Handler* handler,
                                       const EndpointOptions& options = {}) {
  const GrpcServer::Service service{kMethods, handler};
  auto server = GrpcServer::Start(address, options, {&service, 1});
  CHECK_OK(server.status());
  return *std::move(server);
}

absl::Status StartStatus(const std::string& address, Handler* handler) {
  const GrpcServer::Service service{kMethods, handler};
  return GrpcServer::Start(address, {}, {&service, 1}).status();
}

std::unique_ptr<GrpcChannel> ChannelTo(const std::string& address,
                                       const EndpointOptions& options = {}) {
  auto channel = GrpcChannel::Create(address, options);
  CHECK_OK(channel.status());
  return *std::move(channel);
}

absl::StatusOr<Message> CallAndWait(Channel* channel, const Method& method, Message request,
                                    int64_t timeout_ms = 20000) {
  Outcome outcome;
  channel->Call(method, std::move(request), timeout_ms, outcome.callback());
  return outcome.Wait();
}

// Every test of this suite runs over a Unix socket and over TCP.
class GrpcTest : public testing::TestWithParam<bool> {
 protected:
  std::string Address() const {
    return GetParam() ? folder_.SocketAddress("server") : "127.0.0.1:0";
  }

  TempFolder folder_;
  TestHandler handler_;
};

INSTANTIATE_TEST_SUITE_P(Addresses, GrpcTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "Unix" : "Tcp"; });

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

TEST_P(GrpcTest, ADroppedCallbackIsAnsweredUnavailable) {
  const auto server = StartOrDie(Address(), &handler_);
  const auto channel = ChannelTo(server->address());
  EXPECT_EQ(CallAndWait(channel.get(), kEcho, {"drop", {}}).status().code(),
            absl::StatusCode::kUnavailable);
}

TEST_P(GrpcTest, AMalformedRequestIsRefused) {
  const auto server = StartOrDie(Address(), &handler_);
  const auto channel = ChannelTo(server->address());
  // The same path as a plain method: its header's bytes go out as they are.
  const Method raw{kEcho.path, false};
  EXPECT_EQ(CallAndWait(channel.get(), raw, {"\x1a\x01x", {}}).status().code(),
            absl::StatusCode::kInvalidArgument);
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
  // The answer that comes too late goes nowhere.
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

TEST_P(GrpcTest, ShutdownLetsCallsFinish) {
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

TEST_P(GrpcTest, ShutdownNeverHangsOnParkedCalls) {
  const auto server = StartOrDie(Address(), &handler_);
  const auto channel = ChannelTo(server->address());
  std::vector<Outcome> outcomes(10);
  for (Outcome& outcome : outcomes) channel->Call(kPark, {"x", {}}, 20000, outcome.callback());
  auto parked = handler_.TakeParked(outcomes.size());
  server->Shutdown(20);
  for (Outcome& outcome : outcomes) {
    EXPECT_EQ(outcome.Wait().status().code(), absl::StatusCode::kUnavailable);
  }
  for (Callback& respond : parked) respond(Message());  // goes nowhere
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
  // One attempt may still meet the connection that was lost.
  if (absl::IsUnavailable(answer.status())) {
    answer = CallAndWait(channel.get(), kEcho, {"x", {}});
  }
  EXPECT_TRUE(answer.ok()) << answer.status();
}

TEST_P(GrpcTest, ASecondServerAtTheSameAddressIsRefused) {
  auto server = StartOrDie(Address(), &handler_);
  const std::string address = server->address();
  const absl::Status second = StartStatus(address, &handler_);
  EXPECT_EQ(second.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(second.message().find(address), absl::string_view::npos) << second;
  EXPECT_TRUE(CallAndWait(ChannelTo(address).get(), kEcho, {"x", {}}).ok());
  server = nullptr;
  EXPECT_TRUE(StartStatus(address, &handler_).ok());
}

TEST_P(GrpcTest, AMethodHasOneHandler) {
  const GrpcServer::Service services[] = {{kMethods, &handler_}, {kMethods, &handler_}};
  EXPECT_EQ(GrpcServer::Start(Address(), {}, services).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(GrpcAddressTest, TcpPortZeroIsChosenByTheSystem) {
  TestHandler handler;
  const auto a = StartOrDie("127.0.0.1:0", &handler);
  const auto b = StartOrDie("127.0.0.1:0", &handler);
  EXPECT_NE(a->address(), b->address());
  EXPECT_EQ(a->address().rfind("127.0.0.1:", 0), 0u);
  EXPECT_NE(a->address(), "127.0.0.1:0");
}

TEST(GrpcAddressTest, LongSocketPathsAreRefused) {
  TempFolder folder;
  TestHandler handler;
  const std::string start = folder.path() + "/";
  const std::string fits = start + std::string(kMaxSocketPathBytes - start.size(), 's');
  const auto server = StartOrDie("unix:" + fits, &handler);
  EXPECT_TRUE(CallAndWait(ChannelTo(server->address()).get(), kEcho, {"x", {}}).ok());
  EXPECT_EQ(StartStatus("unix:" + fits + "s", &handler).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(GrpcChannel::Create("unix:" + fits + "s", {}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CheckAddress("").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CheckAddress("unix:").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(CheckAddress("unix://" + fits).ok());
}

// Leaves a socket file behind, as a killed process does.
TEST(GrpcAddressTest, AStaleSocketIsReplaced) {
  TempFolder folder;
  TestHandler handler;
  const std::string path = folder.path() + "/server";
  const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::strcpy(name.sun_path, path.c_str());
  ASSERT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&name), sizeof(name)), 0);
  ::close(fd);
  ASSERT_TRUE(std::filesystem::exists(path));
  const auto server = StartOrDie("unix:" + path, &handler);
  EXPECT_TRUE(CallAndWait(ChannelTo(server->address()).get(), kEcho, {"x", {}}).ok());
}

TEST(GrpcAddressTest, AFileThatIsNoSocketIsLeftAlone) {
  TempFolder folder;
  TestHandler handler;
  const std::string path = folder.path() + "/notes.txt";
  std::ofstream(path) << "precious";
  EXPECT_EQ(StartStatus("unix:" + path, &handler).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(std::filesystem::file_size(path), 8u);
}

TEST(GrpcAddressTest, AFolderThatIsNotThereIsAnError) {
  TestHandler handler;
  EXPECT_EQ(StartStatus("unix:/no/such/folder/server", &handler).code(),
            absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace satrap::rpc
