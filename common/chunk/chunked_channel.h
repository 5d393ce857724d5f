// A ChunkedChannel sends requests over another channel, in chunks if they are larger than a frame
// may be, and gathers answers that come in chunks. chunked_handler.h is the other half.
//
// A chunked message is one attempt of its call. Chunks go one after another: each when the one
// before has arrived. A lost chunk is sent again, at most twice; then the attempt is over, and the
// caller makes another one (common/rpc/reliable_call.h) with its own chunks. Each chunk has the
// attempt's time, less the part for the attempt's payload, plus the time that the chunk may take.
// Each answer to a chunk, a refusal too, is a sign of life from when it came: an attempt that fails
// afterwards says so (common/rpc/sign_of_life.h). Only if it fails because a later chunk took too
// long do the next attempts get more time (MarkAnswerBegun, common/rpc/rpc.h).
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
    // Transfers are numbered from here upwards. No other channel to the same peer uses the same
    // numbers.
    uint64_t first_transfer = 0;
    // As EndpointOptions.payload_allocator.
    std::shared_ptr<BufferAllocator> payload_allocator;
    // Not owned; outlives the channel.
    const Executor* clock = nullptr;
  };
  ChunkedChannel(std::unique_ptr<Channel> channel, Options options);
  // Waits as the destructor of the wrapped channel does.
  ~ChunkedChannel() override;

  // As Channel::Call. A request of a bulk method that is larger than max_message_bytes goes in
  // chunks; INVALID_ARGUMENT, naming method, bytes and what to change, if it or its answer has more
  // than largest_bytes. An attempt for which there is no room, here or at the peer, ends with
  // UNAVAILABLE and a sign of life, so that it is repeated until there is room (chunk_memory.h).
  void Call(const Method& method, Message request, int64_t timeout_ms, Callback done) override;

 private:
  struct Rep;
  const std::unique_ptr<Channel> channel_;
  const std::shared_ptr<Rep> rep_;  // shared with the calls under way
};

}  // namespace satrap::rpc

#endif  // SATRAP_COMMON_CHUNK_CHUNKED_CHANNEL_H_
