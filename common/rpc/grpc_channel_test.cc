// What a channel says of messages that are too large. grpc_test.cc has the rest: channel and server
// against each other.

#include "common/rpc/grpc_channel.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/check.h"
#include "common/mutex.h"
#include "common/rpc/grpc_server.h"
#include "common/rpc/grpc_testing.h"
#include "common/rpc/reliable_call.h"
#include "common/thread_pool_executor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap::rpc {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr Method kEcho{"/satrap.Test/Echo", true};
constexpr Method kGrow{"/satrap.Test/Grow", true};
constexpr Method kMethods[] = {kEcho, kGrow};
constexpr int64_t kMaxBytes = 100000;
// The empty header's tag and length, and the payload's.
constexpr int64_t kFrameBytes = 2 + 4;

// Echo answers what it got, Grow a payload over the limit.
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
    const GrpcServer::Service service{kMethods, &handler_};
    auto server = GrpcServer::Start("127.0.0.1:0", options, {&service, 1});
    CHECK_OK(server.status());
    server_ = *std::move(server);
    auto channel = GrpcChannel::Create(server_->address(), options);
    CHECK_OK(channel.status());
    channel_ = *std::move(channel);
  }

  // The result of a reliable call with `payload_bytes`, which repeats what may be repeated.
  absl::StatusOr<Message> Call(const Method& method, size_t payload_bytes) {
    Outcome outcome;
    StartReliableCall(
        &executor_, channel_.get(), method, RpcTimeouts(),
        [payload_bytes] {
          return Message{"", Buffer(payload_bytes)};
        },
        outcome.callback());
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

TEST_F(GrpcChannelTest, AnAnswerOverTheLimitIsAskedForOnceAndTheErrorNamesCallBytesAndCure) {
  const absl::Status status = Call(kGrow, 0).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("answer to /satrap.Test/Grow"), HasSubstr("100006"),
                    HasSubstr("max_message_bytes"), HasSubstr("global_batch_size")));
  EXPECT_EQ(handler_.calls(), 1);
}

}  // namespace
}  // namespace satrap::rpc
