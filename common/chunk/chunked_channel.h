// A ChunkedChannel sends requests over another channel, and divides a request into chunks if it is
// larger than a frame may be. It also joins answers that come in chunks. chunked_handler.h is the
// other half.
//
// A chunked message is one attempt of its call. Its chunks are sent one after another, each after
// the previous one has arrived. A lost chunk is sent again, at most twice; then the attempt is
// over, and the caller makes another attempt (common/rpc/reliable_call.h) with its own chunks. A
// chunk's timeout is that of the attempt, but the time for the attempt's payload is replaced by the
// time for the chunk's own bytes. Each answer to a chunk, even a refusal, is a sign of life: if the
// attempt fails afterwards, its error says when the last answer came (common/rpc/sign_of_life.h).
// Only if the attempt fails because a later chunk took too long do the next attempts get more time
// (MarkAnswerBegun, common/rpc/rpc.h).
//
// Thread-safe.

#ifndef SATRAP_COMMON_CHUNK_CHUNKED_CHANNEL_H_
#define SATRAP_COMMON_CHUNK_CHUNKED_CHANNEL_H_

#include <cstdint>
#include <memory>

#include "common/base/buffer.h"
#include "common/chunk/chunk.h"
#include "common/rpc/rpc.h"
#include "common/thread/executor.h"

namespace satrap::rpc {

class ChunkedChannel final : public Channel {
 public:
  struct Options {
    ChunkLimits limits;
    // Memory for incomplete answers; shared with the process's other channels and its handler.
    std::shared_ptr<ChunkMemory> memory;
    // Transfers are numbered from this number upwards. No other channel to the same peer uses the
    // same numbers.
    uint64_t first_transfer = 0;
    // The same as EndpointOptions.payload_allocator.
    std::shared_ptr<BufferAllocator> payload_allocator;
    // Not owned; outlives the channel.
    const Executor* clock = nullptr;
  };
  ChunkedChannel(std::unique_ptr<Channel> channel, Options options);
  // Blocks for as long as the destructor of the wrapped channel does.
  ~ChunkedChannel() override;

  // Does what Channel::Call says. A request of a bulk method that is larger than max_message_bytes
  // is sent in chunks. INVALID_ARGUMENT, naming method, bytes and what to change, if the request or
  // its answer has more than largest_bytes. An attempt for which there is no room, here or at the
  // peer, ends with UNAVAILABLE and a sign of life, so that it is repeated until there is room
  // (chunk_memory.h).
  void Call(const Method& method, Message request, int64_t timeout_ms, Callback done) override;

 private:
  struct Rep;
  const std::unique_ptr<Channel> channel_;
  const std::shared_ptr<Rep> rep_;  // shared with the calls in progress
};

}  // namespace satrap::rpc

#endif  // SATRAP_COMMON_CHUNK_CHUNKED_CHANNEL_H_
