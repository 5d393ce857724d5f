// Test support: a server, channels to it and calls that wait for their answers, over real sockets.

#ifndef SATRAP_COMMON_RPC_GRPC_TESTING_H_
#define SATRAP_COMMON_RPC_GRPC_TESTING_H_

#include <stdlib.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/rpc/grpc_channel.h"
#include "common/rpc/grpc_server.h"
#include "common/thread/mutex.h"
#include "gtest/gtest.h"

namespace satrap::rpc {

inline constexpr Method kEcho{"/satrap.Test/Echo", true};
inline constexpr Method kPlain{"/satrap.Test/Plain", false};
inline constexpr Method kPark{"/satrap.Test/Park", true};
inline constexpr Method kUnknown{"/satrap.Test/Unknown", true};
inline constexpr Method kMethods[] = {kEcho, kPlain, kPark};

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

// Answers Echo with its request, and keeps the callbacks of Park until TakeParked.
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

// The outcome of one call. A test can wait for it.
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

inline Buffer Pattern(size_t size) {
  Buffer buffer(size);
  for (size_t i = 0; i < size; ++i) buffer.mutable_data()[i] = static_cast<uint8_t>(i * 31 + i / 7);
  return buffer;
}

inline std::unique_ptr<GrpcServer> StartOrDie(const std::string& address, Handler* handler,
                                              const EndpointOptions& options = {}) {
  const GrpcServer::Service service{kMethods, handler};
  auto server = GrpcServer::Start(address, options, {&service, 1});
  CHECK_OK(server.status());
  return *std::move(server);
}

inline absl::Status StartStatus(const std::string& address, Handler* handler) {
  const GrpcServer::Service service{kMethods, handler};
  return GrpcServer::Start(address, {}, {&service, 1}).status();
}

inline std::unique_ptr<GrpcChannel> ChannelTo(const std::string& address,
                                              const EndpointOptions& options = {}) {
  auto channel = GrpcChannel::Create(address, options);
  CHECK_OK(channel.status());
  return *std::move(channel);
}

inline absl::StatusOr<Message> CallAndWait(Channel* channel, const Method& method, Message request,
                                           int64_t timeout_ms = 20000) {
  Outcome outcome;
  channel->Call(method, std::move(request), timeout_ms, outcome.callback());
  return outcome.Wait();
}

// A base for suites whose tests run over a Unix socket and over TCP. Instantiate such a suite with
// testing::Bool() and SocketKind.
class SocketTest : public testing::TestWithParam<bool> {
 protected:
  std::string Address() const {
    return GetParam() ? folder_.SocketAddress("server") : "127.0.0.1:0";
  }

  TempFolder folder_;
  TestHandler handler_;
};

inline std::string SocketKind(const testing::TestParamInfo<bool>& info) {
  return info.param ? "Unix" : "Tcp";
}

}  // namespace satrap::rpc

#endif  // SATRAP_COMMON_RPC_GRPC_TESTING_H_
