// Converts between Messages and gRPC's own types, for grpc_channel.cc and grpc_server.cc.
//
// Thread-safe: no state.

#ifndef SATRAP_COMMON_RPC_GRPC_MESSAGE_H_
#define SATRAP_COMMON_RPC_GRPC_MESSAGE_H_

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/status.h>

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/buffer.h"
#include "common/rpc/rpc.h"

namespace satrap::rpc {

// The message as a frame. Its payload is referenced, not copied, until gRPC has sent it.
grpc::ByteBuffer ToByteBuffer(const Method& method, const Message& message);

// The payload's bytes come from `allocator` unless that is null. INVALID_ARGUMENT if `bytes` is not
// a frame of the method.
absl::StatusOr<Message> FromByteBuffer(const Method& method, const grpc::ByteBuffer& bytes,
                                       const std::shared_ptr<BufferAllocator>& allocator = nullptr);

// Status codes have the same numbers in gRPC and Abseil. A text that is longer than gRPC can carry
// is truncated.
grpc::Status ToGrpcStatus(const absl::Status& status);
absl::Status FromGrpcStatus(const grpc::Status& status);

// Whether gRPC, at either end, refused a message for its size.
bool IsMessageTooLarge(const grpc::Status& status);

}  // namespace satrap::rpc

#endif  // SATRAP_COMMON_RPC_GRPC_MESSAGE_H_
