#include "common/rpc/grpc_message.h"

#include <grpcpp/support/slice.h>

#include <cstring>
#include <string>
#include <vector>

#include "common/rpc/testing/grpc_testing.h"
#include "gtest/gtest.h"

namespace satrap::rpc {
namespace {

constexpr Method kBulk{"/satrap.Test/Bulk", true};

Buffer BufferOf(const std::string& bytes) {
  Buffer buffer(bytes.size());
  std::memcpy(buffer.mutable_data(), bytes.data(), bytes.size());
  return buffer;
}

std::vector<grpc::Slice> SlicesOf(const grpc::ByteBuffer& bytes) {
  std::vector<grpc::Slice> slices;
  EXPECT_TRUE(bytes.Dump(&slices).ok());
  return slices;
}

TEST(GrpcMessage, ABulkMessageComesBackWithHeaderAndPayload) {
  const auto message = FromByteBuffer(kBulk, ToByteBuffer(kBulk, {"header", BufferOf("payload")}));
  ASSERT_TRUE(message.ok()) << message.status();
  EXPECT_EQ(message->header, "header");
  ASSERT_EQ(message->payload.size(), 7u);
  EXPECT_EQ(std::memcmp(message->payload.data(), "payload", 7), 0);
}

TEST(GrpcMessage, EmptyFieldsComeBackEmpty) {
  for (const Method& method : {kBulk, kPlain}) {
    const auto message = FromByteBuffer(method, ToByteBuffer(method, {"", {}}));
    ASSERT_TRUE(message.ok()) << message.status();
    EXPECT_EQ(message->header, "");
    EXPECT_TRUE(message->payload.empty());
  }
}

TEST(GrpcMessage, APlainMessageIsItsHeader) {
  const auto slices = SlicesOf(ToByteBuffer(kPlain, {"abc", {}}));
  ASSERT_EQ(slices.size(), 1u);
  EXPECT_EQ(std::string(slices[0].begin(), slices[0].end()), "abc");
}

TEST(GrpcMessage, ThePayloadIsReferencedAndOutlivesItsMessage) {
  // The payload is long enough that gRPC does not keep it inside the slice.
  const std::string text(1000, 'p');
  grpc::ByteBuffer bytes;
  const void* data;
  {
    const Message message{"h", BufferOf(text)};
    data = message.payload.data();
    bytes = ToByteBuffer(kBulk, message);
  }
  const auto slices = SlicesOf(bytes);
  ASSERT_EQ(slices.size(), 2u);
  EXPECT_EQ(static_cast<const void*>(slices[1].begin()), data);
  EXPECT_EQ(std::string(slices[1].begin(), slices[1].end()), text);
}

TEST(GrpcMessage, AFrameMayBeCutAnywhere) {
  std::string frame;
  for (const grpc::Slice& slice : SlicesOf(ToByteBuffer(kBulk, {"header", BufferOf("payload")}))) {
    frame.append(slice.begin(), slice.end());
  }
  for (size_t cut = 0; cut <= frame.size(); ++cut) {
    const grpc::Slice slices[] = {grpc::Slice(frame.substr(0, cut)),
                                  grpc::Slice(frame.substr(cut))};
    const auto message = FromByteBuffer(kBulk, grpc::ByteBuffer(slices, 2));
    ASSERT_TRUE(message.ok()) << cut << ": " << message.status();
    EXPECT_EQ(message->header, "header");
    EXPECT_EQ(message->payload.size(), 7u);
  }
}

TEST(GrpcMessage, BytesThatAreNoFrameAreRefused) {
  const grpc::Slice slice("\x1a\x01x");
  EXPECT_EQ(FromByteBuffer(kBulk, grpc::ByteBuffer(&slice, 1)).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(FromByteBuffer(kBulk, grpc::ByteBuffer()).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(GrpcMessage, StatusesComeBackAsTheyWere) {
  for (int code = 0; code <= 16; ++code) {
    const absl::Status status(static_cast<absl::StatusCode>(code), "why");
    EXPECT_EQ(FromGrpcStatus(ToGrpcStatus(status)), status);
  }
}

TEST(GrpcMessage, ALongTextIsCutToWhatGrpcCarries) {
  for (const size_t size : {2047, 2048, 2049, 100000}) {
    const std::string text(size, 't');
    EXPECT_EQ(ToGrpcStatus(absl::InternalError(text)).error_message(), text.substr(0, 2048));
  }
}

}  // namespace
}  // namespace satrap::rpc
