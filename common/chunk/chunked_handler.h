// A ChunkedHandler stands before the handler of a role: it joins requests that come in chunks, and
// hands an answer that is larger than a frame may be out in chunks. The handler behind it, with its
// answer windows, sees whole messages only (chunked_channel.h is the other half).
//
// A request is joined in order. A repeated chunk is taken once; one whose transfer is not there, or
// has another chunk next, is UNKNOWN, and its sender makes another attempt. The request reaches the
// handler when its last chunk has come, and the answer goes to that chunk's call.
//
// A large answer is held from the answer to its call until its last chunk was asked for. If a chunk
// is lost after that, the attempt is repeated: the answer window then gives its kept answer, or
// runs a Lookup again, and the answer is a transfer of its own.
//
// Bounds: incomplete requests take at most what `memory` has, with the process's incomplete
// answers, and answers to be fetched at most `answer_bytes`. A transfer that no chunk was sent or
// asked for of in `deadline_us` is given up.
//
// Thread-safe.

#ifndef SATRAP_COMMON_CHUNK_CHUNKED_HANDLER_H_
#define SATRAP_COMMON_CHUNK_CHUNKED_HANDLER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "common/chunk/chunk.h"
#include "common/rpc/rpc.h"
#include "common/thread/executor.h"

namespace satrap::rpc {

class ChunkedHandler final : public Handler {
 public:
  struct Options {
    ChunkLimits limits;
    std::shared_ptr<ChunkMemory> memory;  // for incomplete requests
    int64_t answer_bytes = kLargestMessageBytes;
    int64_t deadline_us = 0;
    // Numbers of answers go up from here. No other process at this address uses the same.
    uint64_t first_transfer = 0;
  };
  // `methods`: those of `handler`. `handler` and `executor`, whose clock and timers are used, are
  // not owned and must outlive this, `executor` also all answers.
  ChunkedHandler(Handler* handler, absl::Span<const Method> methods, Executor* executor,
                 Options options);
  ~ChunkedHandler() override;

  // As the handler, and serves kChunkMethods. Chunks: INVALID_ARGUMENT if one does not fit its
  // message, UNIMPLEMENTED for an unknown method, RESOURCE_EXHAUSTED if the message would have more
  // than largest_bytes. So is an answer of more, in the place of that answer.
  void Handle(const Method& method, Message request, Callback respond) override;

  size_t num_incomplete_requests() const;
  size_t num_held_answers() const;

 private:
  struct Rep;
  const std::shared_ptr<Rep> rep_;  // shared with answers to come
};

}  // namespace satrap::rpc

#endif  // SATRAP_COMMON_CHUNK_CHUNKED_HANDLER_H_
