#include "nn_worker/metrics/testing/live_bytes.h"

#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<int64_t> live{0};
std::atomic<int64_t> most{0};

void* Counted(void* memory) {
  const int64_t now = live += static_cast<int64_t>(malloc_usable_size(memory));
  int64_t before = most;
  while (now > before && !most.compare_exchange_weak(before, now)) {
  }
  return memory;
}

void Free(void* memory) {
  live -= static_cast<int64_t>(malloc_usable_size(memory));
  std::free(memory);
}

void* Allocate(size_t bytes) {
  void* const memory = std::malloc(bytes > 0 ? bytes : 1);
  if (memory == nullptr) throw std::bad_alloc();
  return Counted(memory);
}

}  // namespace

// The other forms of operator new and delete call these, except the aligned ones, which are not
// counted.
void* operator new(size_t bytes) { return Allocate(bytes); }
void* operator new[](size_t bytes) { return Allocate(bytes); }
void operator delete(void* memory) noexcept { Free(memory); }
void operator delete[](void* memory) noexcept { Free(memory); }
void operator delete(void* memory, size_t) noexcept { Free(memory); }
void operator delete[](void* memory, size_t) noexcept { Free(memory); }

namespace satrap {

int64_t LiveBytes() { return live; }
int64_t MostLiveBytes() { return most; }
void ResetMostLiveBytes() { most = live.load(); }

}  // namespace satrap
