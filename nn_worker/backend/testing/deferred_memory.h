// The memory of DeferredBackend: pages that can be closed to the host, and pinned memory that knows
// what it holds.
//
// Thread-compatible, but for PinnedMemory, which is thread-safe.

#ifndef SATRAP_NN_WORKER_BACKEND_TESTING_DEFERRED_MEMORY_H_
#define SATRAP_NN_WORKER_BACKEND_TESTING_DEFERRED_MEMORY_H_

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <map>

#include "common/base/buffer.h"
#include "common/base/check.h"
#include "common/thread/mutex.h"

namespace satrap::deferred {

// Access is set by page, so every allocation begins on one.
inline constexpr int64_t kPageBytes = 4096;

// Zeroed pages, mapped twice: at the address that the caller gets, closed to every access unless
// the host has a view; and at another one, where the inner backend computes.
class Pages {
 public:
  explicit Pages(int64_t bytes)
      : bytes_(bytes), mapped_((bytes + kPageBytes - 1) / kPageBytes * kPageBytes) {
    const int file = memfd_create("deferred_backend", MFD_CLOEXEC);
    CHECK(file >= 0 && ftruncate(file, mapped_) == 0);
    outer_ = static_cast<char*>(mmap(nullptr, mapped_, PROT_NONE, MAP_SHARED, file, 0));
    inner_ =
        static_cast<char*>(mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
    CHECK(outer_ != MAP_FAILED && inner_ != MAP_FAILED);
    close(file);
  }
  ~Pages() {
    munmap(outer_, mapped_);
    munmap(inner_, mapped_);
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  char* outer() const { return outer_; }
  // Where the inner backend finds `p`.
  char* Inner(const void* p) const { return inner_ + (static_cast<const char*>(p) - outer_); }
  // Whether [p, p + bytes) lies within what was asked for, where the caller sees it.
  bool Hold(const void* p, int64_t bytes) const {
    const char* begin = static_cast<const char*>(p);
    return begin >= outer_ && begin < outer_ + bytes_ && bytes <= outer_ + bytes_ - begin;
  }
  void SetOpen(bool open) {
    if (open == open_) return;
    CHECK(mprotect(outer_, mapped_, open ? PROT_READ | PROT_WRITE : PROT_NONE) == 0);
    open_ = open;
  }

 private:
  const int64_t bytes_;
  const int64_t mapped_;
  char* outer_;
  char* inner_;
  bool open_ = false;
};

// Memory that copies of their own lanes may read and write. Any thread makes and frees Buffers of
// it.
class PinnedMemory final : public BufferAllocator {
 public:
  uint8_t* Allocate(size_t size_bytes) override {
    const size_t rounded =
        (size_bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
    auto* const data = static_cast<uint8_t*>(std::aligned_alloc(kBufferAlignment, rounded));
    MutexLock lock(&mutex_);
    sizes_[data] = size_bytes;
    return data;
  }
  void Free(uint8_t* data, size_t) override {
    {
      MutexLock lock(&mutex_);
      sizes_.erase(data);
    }
    std::free(data);
  }
  bool Holds(const uint8_t* data, int64_t bytes) const {
    MutexLock lock(&mutex_);
    auto after = sizes_.upper_bound(data);
    if (after == sizes_.begin()) return false;
    --after;
    return data + bytes <= after->first + after->second;
  }

 private:
  mutable Mutex mutex_;
  std::map<const uint8_t*, size_t> sizes_ GUARDED_BY(mutex_);
};

}  // namespace satrap::deferred

#endif  // SATRAP_NN_WORKER_BACKEND_TESTING_DEFERRED_MEMORY_H_
