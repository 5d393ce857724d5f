// A ChunkedHandler wraps the handler of a role: it joins requests that come in chunks, and cuts
// answers that are too large for one frame into chunks. The wrapped handler, with its answer
// windows, sees only whole messages (chunked_channel.h is the other half).
//
// A request is joined in order. A repeated chunk is added only once. If a chunk's transfer does not
// exist, or expects another chunk next, the answer is UNKNOWN, and the sender makes another
// attempt. The request is passed to the handler when its last chunk has come, and its answer is the
// answer to that chunk's call.
//
// A large answer is kept from the moment at which its call is answered until its last chunk has
// been asked for. If a chunk is lost after that, the attempt is repeated: the answer window then
// gives the answer that it kept, or runs a Lookup again, and that answer is a new transfer.
//
// Limits: the process's incomplete requests and incomplete answers together take at most what
// `memory` has, and answers to be fetched take at most `answer_bytes`; chunk_memory.h says who gets
// room first. A call (call_name.h) has at most one transfer in each direction, that of its newest
// attempt. When a newer attempt begins, the chunks of the earlier one are dropped; if more of them
// come while the newer one lasts, they are refused. A transfer is also dropped if no chunk of it
// has been sent or asked for within `deadline_us`.
//
// Checks: the first chunk of a request begins with the call's header, so the envelope in it is
// checked before anything is kept. The other chunks name only their transfer. The numbers of a
// process's transfers begin at a random number, so a chunk from another run does not match any
// transfer, and is answered UNKNOWN.
//
// Thread-safe.

#ifndef SATRAP_COMMON_CHUNK_CHUNKED_HANDLER_H_
#define SATRAP_COMMON_CHUNK_CHUNKED_HANDLER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/base/buffer.h"
#include "common/chunk/chunk.h"
#include "common/rpc/rpc.h"
#include "common/thread/executor.h"
#include "proto/hot.pb.h"

namespace satrap::rpc {

class ChunkedHandler final : public Handler {
 public:
  struct Options {
    ChunkLimits limits;
    Envelope envelope;                    // of this run
    std::string name;                     // this process's name in errors: "embedding_ps 3"
    std::shared_ptr<ChunkMemory> memory;  // for incomplete requests
    // Allocates the payloads of requests; if null, they are on the heap.
    std::shared_ptr<BufferAllocator> payload_allocator;
    int64_t answer_bytes = kLargestMessageBytes;
    int64_t deadline_us = 0;
    // Answers are numbered from this number upwards. No other process at this address uses the same
    // numbers.
    uint64_t first_transfer = 0;
  };
  // `methods` are those of `handler`. `handler`, and `executor` with its clock and timers, are used
  // but not owned. Both must outlive this object, and `executor` must also outlive all answers.
  ChunkedHandler(Handler* handler, absl::Span<const Method> methods, Executor* executor,
                 Options options);
  ~ChunkedHandler() override;

  // Calls the wrapped handler, and also serves kChunkMethods. Errors of chunks: INVALID_ARGUMENT if
  // a chunk does not fit its message or the message would have more than largest_bytes,
  // UNIMPLEMENTED for an unknown method, FAILED_PRECONDITION if the call is of another run. An
  // answer that has more than largest_bytes is also replaced by INVALID_ARGUMENT.
  void Handle(const Method& method, Message request, Callback respond) override;

  size_t num_incomplete_requests() const;
  size_t num_held_answers() const;

 private:
  struct Rep;
  const std::shared_ptr<Rep> rep_;  // shared with answers to come
};

}  // namespace satrap::rpc

#endif  // SATRAP_COMMON_CHUNK_CHUNKED_HANDLER_H_
