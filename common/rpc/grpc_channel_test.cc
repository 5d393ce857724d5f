// Tests the errors of a channel: messages that are too large, answers that come too late, and calls
// that either side ends. grpc_test.cc tests everything else, with channel and server against each
// other.

#include "common/rpc/grpc_channel.h"

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <atomic>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/rpc/grpc_server.h"
#include "common/rpc/reliable_call.h"
#include "common/rpc/testing/grpc_testing.h"
#include "common/thread/mutex.h"
#include "common/thread/thread_pool_executor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap::rpc {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr Method kGrow{"/satrap.Test/Grow", true};
constexpr Method kEchoAndGrow[] = {kEcho, kGrow};
constexpr int64_t kMaxBytes = 100000;
// The bytes of a frame in addition to its payload: tag and length of the empty header, then tag and
// length of the payload.
constexpr int64_t kFrameBytes = 2 + 4;

// Answers Echo with its request, and Grow with a payload that makes the answer too large.
class GrowingHandler final : public Handler {
 public:
  void Handle(const Method& method, Message request, Callback respond) override {
    {
      MutexLock lock(&mutex_);
      ++calls_;
    }
    if (method == kGrow) request.payload = Buffer(kMaxBytes);
    respond(std::move(request));
  }
  int calls() const {
    MutexLock lock(&mutex_);
    return calls_;
  }

 private:
  mutable Mutex mutex_;
  int calls_ GUARDED_BY(mutex_) = 0;
};

class GrpcChannelTest : public testing::Test {
 protected:
  GrpcChannelTest() {
    EndpointOptions options;
    options.max_message_bytes = kMaxBytes;
    const GrpcServer::Service service{kEchoAndGrow, &handler_};
    auto server = GrpcServer::Start("127.0.0.1:0", options, {&service, 1});
    CHECK_OK(server.status());
    server_ = *std::move(server);
    auto channel = GrpcChannel::Create(server_->address(), options);
    CHECK_OK(channel.status());
    channel_ = *std::move(channel);
  }

  // The result of a ReliableCall with a payload of `payload_bytes`.
  absl::StatusOr<Message> Call(const Method& method, size_t payload_bytes) {
    Outcome outcome;
    std::make_shared<ReliableCall>(
        &executor_, channel_.get(), method, RpcTimeouts(),
        [payload_bytes](bool) {
          return Message{"", Buffer(payload_bytes)};
        },
        outcome.callback())
        ->Start();
    return outcome.Wait();
  }

  GrowingHandler handler_;
  std::unique_ptr<GrpcServer> server_;
  ThreadPoolExecutor executor_{1};
  std::unique_ptr<GrpcChannel> channel_;
};

TEST_F(GrpcChannelTest, ARequestOverTheLimitIsNotSentAndTheErrorNamesCallBytesAndCure) {
  EXPECT_TRUE(Call(kEcho, kMaxBytes - kFrameBytes).ok());
  const absl::Status status = Call(kEcho, kMaxBytes - kFrameBytes + 1).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("request of /satrap.Test/Echo"), HasSubstr("100001"),
                    HasSubstr("max_message_bytes"), HasSubstr("global_batch_size")));
  EXPECT_EQ(handler_.calls(), 1);
}

class CountingAllocator final : public BufferAllocator {
 public:
  uint8_t* Allocate(size_t size_bytes) override {
    allocated += size_bytes;
    return static_cast<uint8_t*>(::operator new(size_bytes, std::align_val_t(kBufferAlignment)));
  }
  void Free(uint8_t* data, size_t) override {
    ::operator delete(data, std::align_val_t(kBufferAlignment));
  }
  std::atomic<size_t> allocated{0};
};

TEST_F(GrpcChannelTest, ThePayloadsOfAnswersLieWhereTheChannelIsTold) {
  const auto allocator = std::make_shared<CountingAllocator>();
  EndpointOptions options;
  options.payload_allocator = allocator;
  channel_ = *GrpcChannel::Create(server_->address(), options);
  const auto answer = Call(kEcho, 1000);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_GT(answer->payload.size(), 0u);
  EXPECT_EQ(allocator->allocated, answer->payload.size());
}

// The buffer takes address space but no memory, because its pages are never touched.
TEST_F(GrpcChannelTest, ARequestOfMoreThanAFrameCanHoldIsRefusedInTheSameWay) {
  const absl::Status status = Call(kEcho, (size_t{1} << 31) + 5).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("request of /satrap.Test/Echo"), HasSubstr("2147483661"),
                    HasSubstr("max_message_bytes")));
  EXPECT_EQ(handler_.calls(), 0);
}

TEST_F(GrpcChannelTest, AnAnswerOverTheLimitIsAskedForOnceAndTheErrorNamesCallBytesAndCure) {
  const absl::Status status = Call(kGrow, 0).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("answer to /satrap.Test/Grow"), HasSubstr("100006"),
                    HasSubstr("max_message_bytes"), HasSubstr("global_batch_size")));
  EXPECT_EQ(handler_.calls(), 1);
}

// Starts a server that passes every call to `service`, which must outlive it. Sets *address to the
// server's address.
std::unique_ptr<grpc::Server> StartGeneric(grpc::CallbackGenericService* service,
                                           std::string* address) {
  grpc::ServerBuilder builder;
  int port = 0;
  ListenOn("127.0.0.1:0", {}, &builder, &port);
  builder.RegisterCallbackGenericService(service);
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  CHECK(server != nullptr) << "no server was started";
  *address = absl::StrCat("127.0.0.1:", port);
  return server;
}

// Never finishes a call. If `begins`, it sends the metadata of an answer, which are its first
// bytes.
class BeginningService final : public grpc::CallbackGenericService {
 public:
  explicit BeginningService(bool begins) : begins_(begins) {}

  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext*) override {
    return new Reactor(begins_);
  }

 private:
  class Reactor final : public grpc::ServerGenericBidiReactor {
   public:
    explicit Reactor(bool begins) {
      if (begins) StartSendInitialMetadata();
    }
    void OnCancel() override { Finish(grpc::Status::CANCELLED); }
    void OnDone() override { delete this; }
  };

  const bool begins_;
};

TEST(GrpcChannelDeadlineTest, SaysWhetherTheAnswerHadBegunToArrive) {
  for (const bool begins : {true, false}) {
    BeginningService service(begins);
    std::string address;
    const std::unique_ptr<grpc::Server> server = StartGeneric(&service, &address);
    const auto channel = ChannelTo(address);
    const absl::Status status = CallAndWait(channel.get(), kEcho, Message(), 500).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
    EXPECT_EQ(AnswerHadBegun(status), begins);
  }
}

// Ends each call as a server that shuts down does.
class EndingService final : public grpc::CallbackGenericService {
 public:
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext*) override {
    return new Reactor;
  }

 private:
  class Reactor final : public grpc::ServerGenericBidiReactor {
   public:
    Reactor() { Finish(grpc::Status::CANCELLED); }
    void OnDone() override { delete this; }
  };
};

TEST(GrpcChannelCancelTest, ACallThatThePeerHasEndedIsThatOfAPeerWhoIsAway) {
  EndingService service;
  std::string address;
  const std::unique_ptr<grpc::Server> server = StartGeneric(&service, &address);
  const auto channel = ChannelTo(address);
  EXPECT_EQ(CallAndWait(channel.get(), kEcho, Message(), 5000).status().code(),
            absl::StatusCode::kUnavailable);
}

TEST(GrpcChannelCancelTest, ACallThatTheChannelItselfGivesUpIsCancelled) {
  BeginningService service(false);
  std::string address;
  const std::unique_ptr<grpc::Server> server = StartGeneric(&service, &address);
  auto channel = ChannelTo(address);
  absl::Status ended;
  channel->Call(kEcho, Message(), 60000,
                [&ended](const absl::StatusOr<Message>& answer) { ended = answer.status(); });
  channel.reset();  // waits for the callback
  EXPECT_EQ(ended.code(), absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace satrap::rpc
