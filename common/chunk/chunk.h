// The code that both ends of a chunked message share (docs/consistency.md, "Large messages"): the
// message's limits, and how it is cut and joined. chunked_channel.h sends large requests, and
// chunked_handler.h sends large answers.

#ifndef SATRAP_COMMON_CHUNK_CHUNK_H_
#define SATRAP_COMMON_CHUNK_CHUNK_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/base/buffer.h"
#include "common/chunk/chunk_memory.h"
#include "common/rpc/rpc.h"
#include "proto/chunk.pb.h"

namespace satrap::rpc {

inline constexpr Method kSendChunk = {"/satrap.Chunks/SendChunk", true};
inline constexpr Method kFetchChunk = {"/satrap.Chunks/FetchChunk", true};
inline constexpr Method kChunkMethods[] = {kSendChunk, kFetchChunk};

// The most bytes that a chunk's frame has in addition to the chunk itself.
inline constexpr size_t kChunkOverheadBytes = 128;
// The size limit of any message, in chunks or not, whatever the job says.
inline constexpr int64_t kLargestMessageBytes = int64_t{8} << 30;

struct ChunkLimits {
  // The largest size of a frame, including a frame that holds a chunk
  // (JobConfig.max_message_bytes). REQUIRES: above kChunkOverheadBytes
  int64_t max_message_bytes = 0;
  // The most bytes of header and payload that one message may have.
  int64_t largest_bytes = kLargestMessageBytes;
};

// The number of bytes of header and payload together.
uint64_t BytesOf(const Message& message);
// The sum of the two sizes that a peer states, or the largest uint64_t if the sum overflows.
uint64_t StatedBytes(uint64_t header_bytes, uint64_t payload_bytes);
// INVALID_ARGUMENT, saying what to do, if `bytes` exceeds what a message may have. `kind` has the
// same meaning as for CheckFrameSize (frame.h).
absl::Status CheckMessageSize(absl::string_view kind, const Method& method, uint64_t bytes,
                              int64_t largest_bytes);
// Whether `message` is sent whole, not in chunks.
bool FitsInOneFrame(const Method& method, const Message& message, const ChunkLimits& limits);

// The chunk of `message` that begins at `offset_bytes`. REQUIRES: offset_bytes < BytesOf(message)
Buffer ChunkAt(const Message& message, uint64_t offset_bytes, const ChunkLimits& limits);

// An answer that tells the peer about a transfer instead of answering the call itself.
Message NoteOf(ChunkNote::State state);
// Whether `answer` is a note. Looks at two bytes.
bool IsNote(const Message& answer);

// Joins a message whose chunks arrive in order. Making and destroying it allocates and frees the
// memory for the whole message, so neither is done under a lock that others wait for. Not
// thread-safe.
class ChunkJoiner {
 public:
  // `share` must be for header_bytes + payload_bytes. The payload is allocated by `allocator`
  // unless that is null.
  ChunkJoiner(uint64_t header_bytes, uint64_t payload_bytes, ChunkMemory::Share share,
              const std::shared_ptr<BufferAllocator>& allocator);

  // next_bytes: the offset at which the next chunk begins. missing_bytes: the number of bytes from
  // there to the end.
  uint64_t next_bytes() const { return next_bytes_; }
  uint64_t missing_bytes() const { return BytesOf(message_) - next_bytes_; }
  bool complete() const { return missing_bytes() == 0; }
  // INVALID_ARGUMENT if the chunk is empty or goes beyond the end of the message.
  absl::Status Add(const Buffer& chunk);
  // REQUIRES: complete()
  Message Take() { return std::move(message_); }

 private:
  Message message_;
  ChunkMemory::Share share_;
  uint64_t next_bytes_ = 0;
};

}  // namespace satrap::rpc

#endif  // SATRAP_COMMON_CHUNK_CHUNK_H_
