// A frame encodes a Message as the bytes of one gRPC message. For a bulk method the bytes are the
// protobuf message {header = 1, payload = 2}, as shown here; for a plain method they are the header
// alone:
//
//   0x0a  varint: header bytes  header...  0x12  varint: payload bytes  payload...
//
// As in any protobuf message, an empty field may be absent. Forms that generated code never writes
// are refused: other fields, a field twice, the payload before the header.
//
// Example: header {1, 2} and payload {7, 8, 9} are 0a 02 01 02 12 03 07 08 09.
//
// Thread-safe: no state.

#ifndef SATRAP_COMMON_RPC_FRAME_H_
#define SATRAP_COMMON_RPC_FRAME_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/base/buffer.h"
#include "common/rpc/rpc.h"

namespace satrap::rpc {

// RESOURCE_EXHAUSTED, saying what to do, unless the frame of `message` has at most
// `max_message_bytes` and every field is under 2 GiB, which is protobuf's own limit. `kind` is
// "request of" or "answer to". Senders check each message before they encode it.
absl::Status CheckFrameSize(absl::string_view kind, const Method& method, const Message& message,
                            int64_t max_message_bytes);

// The error of CheckFrameSize, for a message whose sizes only gRPC knows.
absl::Status FrameTooLarge(absl::string_view kind, const Method& method, absl::string_view sizes);

// The bytes of the frame that precede the payload. The caller sends the payload after them, without
// copying it. REQUIRES: a message of a plain method has no payload; each field is under 2 GiB
std::string EncodeFramePrefix(const Method& method, const Message& message);

// Decodes the message in the concatenated bytes of `slices`, which may be cut anywhere and need no
// alignment. The payload is copied once, into a Buffer of its own (from `allocator` unless that is
// null). INVALID_ARGUMENT if the bytes are not a frame of the method. A length that exceeds the
// remaining bytes is refused before anything is allocated for it.
absl::StatusOr<Message> DecodeFrame(const Method& method,
                                    absl::Span<const absl::string_view> slices,
                                    const std::shared_ptr<BufferAllocator>& allocator = nullptr);

}  // namespace satrap::rpc

#endif  // SATRAP_COMMON_RPC_FRAME_H_
