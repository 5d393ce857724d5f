#include "common/rpc/grpc_message.h"

#include <grpcpp/support/slice.h>

#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/match.h"
#include "common/rpc/frame.h"

namespace satrap::rpc {
namespace {

// gRPC carries a status in a header list of 8 KiB, percent-encoded.
constexpr size_t kMaxStatusTextBytes = 2048;

// A slice that refers to the buffer's own bytes. It keeps the buffer alive until gRPC no longer
// needs them.
grpc::Slice SliceOf(const Buffer& buffer) {
  auto* owner = new Buffer(buffer);
  return grpc::Slice(
      owner->mutable_data(), owner->size(), [](void* data) { delete static_cast<Buffer*>(data); },
      owner);
}

}  // namespace

grpc::ByteBuffer ToByteBuffer(const Method& method, const Message& message) {
  const grpc::Slice prefix(EncodeFramePrefix(method, message));
  if (message.payload.empty()) return grpc::ByteBuffer(&prefix, 1);
  const grpc::Slice slices[] = {prefix, SliceOf(message.payload)};
  return grpc::ByteBuffer(slices, 2);
}

absl::StatusOr<Message> FromByteBuffer(const Method& method, const grpc::ByteBuffer& bytes,
                                       const std::shared_ptr<BufferAllocator>& allocator) {
  std::vector<grpc::Slice> slices;
  if (const grpc::Status status = bytes.Dump(&slices); !status.ok()) {
    return absl::InvalidArgumentError("message cannot be read: " + status.error_message());
  }
  absl::InlinedVector<absl::string_view, 64> views;
  for (const grpc::Slice& slice : slices) {
    views.emplace_back(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return DecodeFrame(method, views, allocator);
}

grpc::Status ToGrpcStatus(const absl::Status& status) {
  return grpc::Status(static_cast<grpc::StatusCode>(status.raw_code()),
                      std::string(status.message().substr(0, kMaxStatusTextBytes)));
}

absl::Status FromGrpcStatus(const grpc::Status& status) {
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

bool IsMessageTooLarge(const grpc::Status& status) {
  return status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED &&
         absl::StrContains(status.error_message(), "message larger than max");
}

}  // namespace satrap::rpc
