#include "common/chunk/chunk_memory.h"

#include <algorithm>

namespace satrap::rpc {

ChunkMemory::Share::~Share() {
  if (memory_ == nullptr) return;
  MutexLock lock(&memory_->mutex_);
  memory_->taken_bytes_ -= bytes_;
}

ChunkMemory::Share ChunkMemory::Take(const std::shared_ptr<ChunkMemory>& memory, uint64_t bytes,
                                     const Claim& claim) {
  Share share;
  MutexLock lock(&memory->mutex_);
  std::vector<Waiting>& waiting = memory->waiting_;
  waiting.erase(std::remove_if(waiting.begin(), waiting.end(),
                               [&](const Waiting& w) { return w.until_us <= claim.now_us; }),
                waiting.end());
  const auto own = std::find_if(waiting.begin(), waiting.end(), [&](const Waiting& w) {
    return w.asker == claim.asker && claim.call.has_value() && w.call == *claim.call;
  });
  const uint64_t reserved_bytes =
      waiting.empty() || own == waiting.begin() ? 0 : waiting.front().bytes;
  const auto left_bytes = static_cast<uint64_t>(memory->most_bytes_ - memory->taken_bytes_);
  if (bytes <= left_bytes && reserved_bytes <= left_bytes - bytes) {
    if (own != waiting.end()) waiting.erase(own);
    share.memory_ = memory;
    share.bytes_ = static_cast<int64_t>(bytes);
    memory->taken_bytes_ += share.bytes_;
    return share;
  }
  const int64_t until_us = claim.now_us + memory->patience_us_;
  if (bytes > static_cast<uint64_t>(memory->most_bytes_)) {
    if (own != waiting.end()) waiting.erase(own);
  } else if (own != waiting.end()) {
    own->bytes = bytes;
    own->until_us = until_us;
  } else if (claim.call.has_value() && waiting.size() < kMostWaiting) {
    waiting.push_back({claim.asker, *claim.call, bytes, until_us});
  }
  return share;
}

int64_t ChunkMemory::taken_bytes() const {
  MutexLock lock(&mutex_);
  return taken_bytes_;
}

size_t ChunkMemory::num_waiting() const {
  MutexLock lock(&mutex_);
  return waiting_.size();
}

}  // namespace satrap::rpc
