// Limits the bytes that incomplete messages take together. A message gets room for all of its bytes
// or for none. A message without room is not begun, and its call is repeated until there is room.
//
// Turns. The first call that was refused is the first to get room. Until then, other calls get room
// only from the bytes that would still be free if the first call had its room. So a large message
// cannot starve while small ones come and go. Each message that has room is completed or given up
// without needing more, so the first call's turn always comes. A call that does not ask again
// within `patience_us` loses its turn, and so does a call whose message could never fit. At most
// kMostWaiting calls wait in turn; further calls have no turn, and get room only if there is room
// when they ask.
//
// Thread-safe.

#ifndef SATRAP_COMMON_CHUNK_CHUNK_MEMORY_H_
#define SATRAP_COMMON_CHUNK_CHUNK_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/types/optional.h"
#include "common/chunk/call_name.h"
#include "common/thread/mutex.h"

namespace satrap::rpc {

class ChunkMemory {
 public:
  static constexpr size_t kMostWaiting = 256;

  ChunkMemory(int64_t most_bytes, int64_t patience_us)
      : most_bytes_(most_bytes), patience_us_(patience_us) {}

  // Bytes that are reserved in the memory. They are given back when the share is destroyed.
  class Share {
   public:
    Share() = default;
    Share(Share&& other) noexcept : memory_(std::move(other.memory_)), bytes_(other.bytes_) {}
    Share& operator=(Share&& other) noexcept {
      std::swap(memory_, other.memory_);
      std::swap(bytes_, other.bytes_);
      return *this;
    }
    ~Share();

    // Whether the share holds the bytes that were asked for.
    explicit operator bool() const { return memory_ != nullptr; }

   private:
    friend class ChunkMemory;
    std::shared_ptr<ChunkMemory> memory_;
    int64_t bytes_ = 0;
  };

  // Who asks for room. `asker` distinguishes calls of the same name, such as calls to several
  // peers.
  struct Claim {
    const void* asker = nullptr;
    absl::optional<CallName> call;  // nullopt: waits without a turn
    int64_t now_us = 0;             // by a clock that all claims share
  };
  // An empty share if there is no room for `bytes`.
  static Share Take(const std::shared_ptr<ChunkMemory>& memory, uint64_t bytes, const Claim& claim);

  int64_t taken_bytes() const;
  size_t num_waiting() const;

 private:
  struct Waiting {
    const void* asker;
    CallName call;
    uint64_t bytes;
    int64_t until_us;  // when it loses its turn
  };

  const int64_t most_bytes_;
  const int64_t patience_us_;
  mutable Mutex mutex_;
  int64_t taken_bytes_ GUARDED_BY(mutex_) = 0;
  std::vector<Waiting> waiting_ GUARDED_BY(mutex_);  // in the order of their first refusals
};

}  // namespace satrap::rpc

#endif  // SATRAP_COMMON_CHUNK_CHUNK_MEMORY_H_
