// Measures what Satrap's calls cost in addition to gRPC itself: calls with a small request and an
// answer of 1 MiB, over a Unix socket and over TCP, with 1 and with 4 in flight, in two ways:
//   - satrap: GrpcChannel and GrpcServer, with the answer gathered into a Buffer;
//   - raw: gRPC's generic callback API alone, with a constant answer that nobody reads.
// Both run in this process, in turns, with the same channel and server options. `ratio` compares
// the rates. `core_ratio` compares the processor time of a call at both ends, which other load on
// the machine disturbs less. Prints one line of JSON.
//
//   rpc_benchmark [seconds per case]

#include <grpcpp/client_context.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <stdlib.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/base/check.h"
#include "common/base/cpu_name.h"
#include "common/base/process_memory.h"
#include "common/flags/flags.h"
#include "common/json/json.h"
#include "common/rpc/endpoints.h"
#include "common/rpc/grpc_channel.h"
#include "common/rpc/grpc_server.h"
#include "common/testing/measure.h"
#include "common/thread/mutex.h"
#include "proto/benchmark.pb.h"

namespace satrap::rpc {
namespace {

constexpr Method kLookup{"/satrap.EmbeddingPs/Lookup", true};
constexpr size_t kAnswerBytes = 1 << 20;
constexpr size_t kRequestBytes = 100;
constexpr int64_t kTimeoutMs = 60000;
constexpr int kRounds = 10;  // in which each side is measured once
constexpr double kMebibyte = 1 << 20;

using Clock = std::chrono::steady_clock;

// Starts one call and runs the given task when it has succeeded.
using Caller = std::function<void(std::function<void()>)>;

struct Rate {
  double mib_per_s;
  double core_us_per_call;
};

// Keeps `in_flight` calls in flight for `seconds`: each call starts the next one when it ends.
Rate MeasureRate(const Caller& call, int in_flight, double seconds) {
  struct {
    Mutex mutex;
    CondVar all_done;
    int64_t calls = 0;
    int open = 0;
  } state;
  const double start_processor_s = ProcessUsageSeconds();
  const auto start = Clock::now();
  const auto end = start + std::chrono::duration<double>(seconds);
  std::function<void()> done = [&] {
    {
      MutexLock lock(&state.mutex);
      ++state.calls;
      if (Clock::now() >= end) {
        if (--state.open == 0) state.all_done.NotifyAll();
        return;
      }
    }
    call(done);
  };
  state.open = in_flight;
  for (int i = 0; i < in_flight; ++i) call(done);
  MutexLock lock(&state.mutex);
  while (state.open > 0) state.all_done.Wait(&state.mutex);
  const std::chrono::duration<double> elapsed = Clock::now() - start;
  return {state.calls * (kAnswerBytes / kMebibyte) / elapsed.count(),
          1e6 * (ProcessUsageSeconds() - start_processor_s) / state.calls};
}

class AnswerSource final : public Handler {
 public:
  AnswerSource() : payload_(kAnswerBytes) { std::memset(payload_.mutable_data(), 7, kAnswerBytes); }
  void Handle(const Method&, Message, Callback respond) override {
    respond(Message{std::string("\x08\x00", 2), payload_});
  }

 private:
  Buffer payload_;
};

class RawReactor final : public grpc::ServerGenericBidiReactor {
 public:
  explicit RawReactor(const grpc::ByteBuffer* answer) : answer_(answer) { StartRead(&request_); }
  void OnReadDone(bool ok) override {
    CHECK(ok);
    StartWriteAndFinish(answer_, grpc::WriteOptions(), grpc::Status::OK);
  }
  void OnDone() override { delete this; }

 private:
  const grpc::ByteBuffer* const answer_;
  grpc::ByteBuffer request_;
};

class RawService final : public grpc::CallbackGenericService {
 public:
  RawService() : bytes_(kAnswerBytes, '\7') {
    const grpc::Slice slice(bytes_.data(), bytes_.size(), grpc::Slice::STATIC_SLICE);
    answer_ = grpc::ByteBuffer(&slice, 1);
  }
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext*) override {
    return new RawReactor(&answer_);
  }

 private:
  const std::string bytes_;
  grpc::ByteBuffer answer_;
};

class RawCall final : public grpc::ClientUnaryReactor {
 public:
  RawCall(grpc::GenericStub* stub, const grpc::ByteBuffer& request, std::function<void()> done)
      : request_(request), done_(std::move(done)) {
    context_.set_wait_for_ready(true);
    context_.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(kTimeoutMs));
    stub->PrepareUnaryCall(&context_, kLookup.path, {}, &request_, &answer_, this);
    StartCall();
  }
  void OnDone(const grpc::Status& status) override {
    CHECK(status.ok()) << status.error_message();
    CHECK(answer_.Length() == kAnswerBytes);
    done_();
    delete this;
  }

 private:
  grpc::ClientContext context_;
  grpc::ByteBuffer request_;
  grpc::ByteBuffer answer_;
  const std::function<void()> done_;
};

// The two pairs of client and server, on one kind of address.
class Pairs {
 public:
  Pairs(const std::string& satrap_address, const std::string& raw_address)
      : request_(kRequestBytes) {
    const GrpcServer::Service service{{&kLookup, 1}, &source_};
    auto server = GrpcServer::Start(satrap_address, {}, {&service, 1});
    CHECK_OK(server.status());
    server_ = *std::move(server);
    auto channel = GrpcChannel::Create(server_->address(), {});
    CHECK_OK(channel.status());
    channel_ = *std::move(channel);

    grpc::ServerBuilder builder;
    int port = 0;
    ListenOn(raw_address, {}, &builder, &port);
    builder.RegisterCallbackGenericService(&raw_service_);
    raw_server_ = builder.BuildAndStart();
    CHECK(raw_server_ != nullptr);
    const bool is_unix = raw_address.rfind("unix:", 0) == 0;
    auto raw_channel = NewChannel(is_unix ? raw_address : absl::StrFormat("127.0.0.1:%d", port),
                                  EndpointOptions());
    CHECK_OK(raw_channel.status());
    raw_stub_ = std::make_unique<grpc::GenericStub>(*raw_channel);
    std::memset(request_.mutable_data(), 1, kRequestBytes);
    const grpc::Slice slice(request_.data(), kRequestBytes);
    raw_request_ = grpc::ByteBuffer(&slice, 1);
  }

  Caller satrap() {
    return [this](std::function<void()> done) {
      channel_->Call(kLookup, Message{"", request_}, kTimeoutMs,
                     [done = std::move(done)](absl::StatusOr<Message> answer) {
                       CHECK_OK(answer.status());
                       CHECK(answer->payload.size() == kAnswerBytes);
                       done();
                     });
    };
  }
  Caller raw() {
    return [this](std::function<void()> done) {
      new RawCall(raw_stub_.get(), raw_request_, std::move(done));
    };
  }

 private:
  AnswerSource source_;
  std::unique_ptr<GrpcServer> server_;
  std::unique_ptr<GrpcChannel> channel_;
  RawService raw_service_;
  std::unique_ptr<grpc::Server> raw_server_;
  std::unique_ptr<grpc::GenericStub> raw_stub_;
  grpc::ByteBuffer raw_request_;
  Buffer request_;
};

RpcLine::Case RunCase(const char* address_kind, Pairs* pairs, int in_flight, double seconds) {
  const Caller callers[] = {pairs->satrap(), pairs->raw()};
  std::vector<double> mib_per_s[2];
  std::vector<double> core_us[2];
  std::vector<double> ratio;
  std::vector<double> core_ratio;
  for (int round = -1; round < kRounds; ++round) {
    // The two sides take turns in going first, so that the order favours neither.
    Rate rates[2];
    for (const int side : {round & 1, ~round & 1}) {
      rates[side] = MeasureRate(callers[side], in_flight, seconds / kRounds / 2);
    }
    if (round < 0) continue;  // the first round warms up
    for (const int side : {0, 1}) {
      mib_per_s[side].push_back(rates[side].mib_per_s);
      core_us[side].push_back(rates[side].core_us_per_call);
    }
    ratio.push_back(rates[0].mib_per_s / rates[1].mib_per_s);
    core_ratio.push_back(rates[1].core_us_per_call / rates[0].core_us_per_call);
  }
  RpcLine::Case line;
  line.set_address(address_kind);
  line.set_in_flight(in_flight);
  line.set_satrap_mib_per_s(Median(mib_per_s[0]));
  line.set_raw_mib_per_s(Median(mib_per_s[1]));
  line.set_ratio(Median(ratio));
  line.set_satrap_core_us(Median(core_us[0]));
  line.set_raw_core_us(Median(core_us[1]));
  line.set_core_ratio(Median(core_ratio));
  return line;
}

void Run(double seconds) {
  std::string folder = std::filesystem::temp_directory_path() / "rpc_benchmark_XXXXXX";
  CHECK(::mkdtemp(folder.data()) != nullptr);
  const std::string prefix = absl::StrFormat("unix:%s/", folder);
  RpcLine line;
  line.set_benchmark("rpc");
  line.set_answer_bytes(kAnswerBytes);
  {
    Pairs over_unix(prefix + "satrap", prefix + "raw");
    Pairs over_tcp("127.0.0.1:0", "127.0.0.1:0");
    for (const int in_flight : {1, 4}) {
      *line.add_cases() = RunCase("unix", &over_unix, in_flight, seconds);
      *line.add_cases() = RunCase("tcp", &over_tcp, in_flight, seconds);
    }
  }
  std::filesystem::remove_all(folder);
  line.set_cpu(CpuName());
  PrintJson(line);
}

}  // namespace
}  // namespace satrap::rpc

int main(int argc, char** argv) {
  satrap::KeepFreedMemory();  // as every role does
  double seconds = 4;
  const auto code = satrap::TakeProgramFlags(
      argc, argv, "usage: rpc_benchmark [SECONDS]",
      {satrap::NumberFlag("seconds", "N", "of each measurement (default: 4)", &seconds,
                          satrap::kAboveZero)},
      /*in_order=*/1);
  if (code.has_value()) return *code;
  satrap::rpc::Run(seconds);
  return 0;
}
