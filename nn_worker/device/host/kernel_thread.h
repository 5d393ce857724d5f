// One thread of a running kernel, as the kernel sees it through kernel_dialect.h, and the calls
// that need its block. Called from kernels alone.
//
// A broken contract ends the process, with one message that names the rule, the source's line,
// kernel, block and thread.
//
// Thread-safe: a call concerns the block that runs in the calling thread.

#ifndef SATRAP_NN_WORKER_DEVICE_HOST_KERNEL_THREAD_H_
#define SATRAP_NN_WORKER_DEVICE_HOST_KERNEL_THREAD_H_

#include <cstdint>

#include "nn_worker/device/device_stream.h"

namespace satrap::host {

class BlockRunner;
class GuardedMemory;

// A line of a kernel's source. clang 14 has no std::source_location.
struct Site {
  const char* file = "";
  int line = 0;
};

// The block that runs in a thread of the host.
struct Block {
  const char* signature = "";  // KernelLaunch::signature
  Dim3 index;
  Dim3 size;
  Dim3 grid;
  BlockRunner* runner = nullptr;
  GuardedMemory* memory = nullptr;  // of the device
};

struct KernelThread {
  const Block* block = nullptr;
  Dim3 index;
  int number = 0;  // in the block, x the fastest
  int lane = 0;    // number % 32
};

// The kernel thread that runs in this thread of the host; null outside kernels. It is a variable
// because the functions that kernels call do not get it as an argument.
inline constinit thread_local KernelThread* current_thread = nullptr;

enum class WarpOperation { kSync, kShuffle, kShuffleDown, kShuffleXor, kVote };

// Returns when all threads of the block have called it.
void Barrier(Site where);

// Waits until all lanes of `mask` have called it. Returns the `value` of lane `from` or, for kVote,
// one bit for each lane, set if its value is not 0. If `mask` does not name lane `from`, all bits
// are set: a NaN.
uint64_t WarpExchange(WarpOperation operation, uint32_t mask, uint64_t value, int from, Site where);

// The block's array of `bytes` bytes that belongs to `site`, aligned to 16. NaN at first.
void* SharedArray(const void* site, const char* name, int64_t bytes);
// The launch's shared_bytes, aligned to 16. NaN at first.
void* DynamicShared();

[[noreturn]] void FailAlignment(const void* p, int64_t bytes, Site where);

inline void CheckAligned(const void* p, int64_t bytes, Site where) {
  if ((reinterpret_cast<uintptr_t>(p) & static_cast<uintptr_t>(bytes - 1)) != 0) {
    FailAlignment(p, bytes, where);
  }
}

[[noreturn]] void FailDelta(int delta, Site where);

inline void CheckDelta(int delta, Site where) {
  if (delta < 0 || delta >= 32) FailDelta(delta, where);
}

}  // namespace satrap::host

#endif  // SATRAP_NN_WORKER_DEVICE_HOST_KERNEL_THREAD_H_
