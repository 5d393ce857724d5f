// Tests Satrap's raw calls together with code that protoc generates: any gRPC client can call a
// role, and a role can call any gRPC server.

#include <grpcpp/client_context.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "common/base/check.h"
#include "common/rpc/endpoints.h"
#include "common/rpc/grpc_channel.h"
#include "common/rpc/grpc_server.h"
#include "common/thread/mutex.h"
#include "gtest/gtest.h"
#include "proto/hot.grpc.pb.h"
#include "proto/hot.pb.h"

namespace satrap::rpc {
namespace {

constexpr Method kLookup{"/satrap.EmbeddingPs/Lookup", true};

Buffer BufferOf(const std::string& bytes) {
  Buffer buffer(bytes.size());
  if (!bytes.empty()) std::memcpy(buffer.mutable_data(), bytes.data(), bytes.size());
  return buffer;
}

std::string TextOf(const Buffer& buffer) {
  return std::string(reinterpret_cast<const char*>(buffer.data()), buffer.size());
}

std::string Pattern(size_t size) {
  std::string bytes(size, '\0');
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 31 + i / 7);
  return bytes;
}

LookupHeader RequestHeader() {
  LookupHeader header;
  header.mutable_envelope()->set_job_fingerprint(0x123456789abcdef0);
  header.set_training(true);
  TableKeys* keys = header.add_tables();
  keys->set_table(3);
  keys->set_num_keys(7);
  return header;
}

// The answer that both kinds of server give has the request's table and count. Its payload is the
// request's payload twice.
LookupAnswerHeader AnswerHeader(const LookupHeader& request) {
  LookupAnswerHeader header;
  header.set_outcome(OUTCOME_DONE);
  TableValues* values = header.add_tables();
  values->set_table(request.tables(0).table());
  values->set_num_keys(request.tables(0).num_keys());
  return header;
}

class RawPs final : public Handler {
 public:
  void Handle(const Method&, Message request, Callback respond) override {
    LookupHeader header;
    if (!header.ParseFromString(request.header) || header.tables_size() != 1) {
      return respond(absl::InvalidArgumentError("header.tables: want one"));
    }
    const std::string payload = TextOf(request.payload);
    respond(Message{AnswerHeader(header).SerializeAsString(), BufferOf(payload + payload)});
  }
};

class GeneratedPs final : public EmbeddingPs::Service {
 public:
  grpc::Status Lookup(grpc::ServerContext*, const LookupRequest* request,
                      LookupAnswer* answer) override {
    if (request->header().tables_size() != 1) {
      return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "header.tables: want one");
    }
    *answer->mutable_header() = AnswerHeader(request->header());
    if (request->has_payload()) answer->set_payload(request->payload() + request->payload());
    return grpc::Status::OK;
  }
};

class GeneratedClientTest : public testing::TestWithParam<size_t> {};
class GeneratedServerTest : public testing::TestWithParam<size_t> {};

const auto kPayloadBytes = testing::Values(0, 1, 63, 1000, 1 << 20, (3 << 20) + 5);
INSTANTIATE_TEST_SUITE_P(PayloadBytes, GeneratedClientTest, kPayloadBytes);
INSTANTIATE_TEST_SUITE_P(PayloadBytes, GeneratedServerTest, kPayloadBytes);

std::unique_ptr<GrpcServer> StartRawServer(RawPs* handler) {
  const GrpcServer::Service service{{&kLookup, 1}, handler};
  auto server = GrpcServer::Start("127.0.0.1:0", {}, {&service, 1});
  CHECK_OK(server.status());
  return *std::move(server);
}

std::unique_ptr<EmbeddingPs::Stub> StubTo(const std::string& address) {
  auto channel = NewChannel(address, {});
  CHECK_OK(channel.status());
  return EmbeddingPs::NewStub(*channel);
}

TEST_P(GeneratedClientTest, IsServedByTheRawServer) {
  RawPs handler;
  const auto server = StartRawServer(&handler);
  const auto stub = StubTo(server->address());
  LookupRequest request;
  *request.mutable_header() = RequestHeader();
  if (GetParam() > 0) request.set_payload(Pattern(GetParam()));
  grpc::ClientContext context;
  context.set_wait_for_ready(true);
  LookupAnswer answer;
  const grpc::Status status = stub->Lookup(&context, request, &answer);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(answer.header().SerializeAsString(),
            AnswerHeader(request.header()).SerializeAsString());
  EXPECT_TRUE(answer.payload() == Pattern(GetParam()) + Pattern(GetParam()));
}

TEST(GeneratedClientErrorTest, GetsCodeAndText) {
  RawPs handler;
  const auto server = StartRawServer(&handler);
  const auto stub = StubTo(server->address());
  grpc::ClientContext context;
  LookupAnswer answer;
  const grpc::Status status = stub->Lookup(&context, LookupRequest(), &answer);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(), "header.tables: want one");
}

// Makes one raw call to a generated service on a server that lives only for this call.
absl::StatusOr<Message> CallGeneratedServer(Message request) {
  GeneratedPs service;
  grpc::ServerBuilder builder;
  int port = 0;
  ListenOn("127.0.0.1:0", {}, &builder, &port);
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  CHECK(server != nullptr);
  auto channel = GrpcChannel::Create("127.0.0.1:" + std::to_string(port), {});
  CHECK_OK(channel.status());
  Mutex mutex;
  CondVar changed;
  bool done = false;
  absl::StatusOr<Message> result;
  (*channel)->Call(kLookup, std::move(request), 20000, [&](absl::StatusOr<Message> answer) {
    MutexLock lock(&mutex);
    result = std::move(answer);
    done = true;
    changed.NotifyAll();
  });
  MutexLock lock(&mutex);
  while (!done) changed.Wait(&mutex);
  return result;
}

TEST_P(GeneratedServerTest, AnswersTheRawChannel) {
  const auto answer =
      CallGeneratedServer({RequestHeader().SerializeAsString(), BufferOf(Pattern(GetParam()))});
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->header, AnswerHeader(RequestHeader()).SerializeAsString());
  EXPECT_TRUE(TextOf(answer->payload) == Pattern(GetParam()) + Pattern(GetParam()));
}

TEST(GeneratedServerErrorTest, ReachesTheRawChannel) {
  EXPECT_EQ(CallGeneratedServer({"", Buffer()}).status(),
            absl::InvalidArgumentError("header.tables: want one"));
}

}  // namespace
}  // namespace satrap::rpc
