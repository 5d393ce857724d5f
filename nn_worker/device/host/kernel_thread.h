// One thread of a running kernel, as the kernel sees it through kernel_dialect.h, and the calls
// that involve its block. Only kernels call them.
//
// A broken contract ends the process with one message that names the rule, the source line, the
// kernel, the block and the thread.
//
// Thread-safe: a call concerns the block that runs in the calling thread.

#ifndef SATRAP_NN_WORKER_DEVICE_HOST_KERNEL_THREAD_H_
#define SATRAP_NN_WORKER_DEVICE_HOST_KERNEL_THREAD_H_

#include <cstdint>

#include "nn_worker/device/device_stream.h"

namespace satrap::host {

class BlockRunner;
class GuardedMemory;

// A line of a kernel's source. (clang 14 does not have std::source_location.)
struct Site {
  const char* file = "";
  int line = 0;
};

// The block that a host thread is running.
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

// The kernel thread that this host thread is running; null outside kernels. It is a variable
// because the functions that kernels call do not get it as an argument.
inline constinit thread_local KernelThread* current_thread = nullptr;

enum class WarpOperation { kSync, kShuffle, kShuffleDown, kShuffleXor, kVote };

// Returns when all threads of the block have called it.
void Barrier(Site where);

// Waits until all lanes of `mask` have called it. Returns the `value` of lane `from`. If `mask`
// does not include that lane, all bits of the result are set, which is a NaN. For kVote returns one
// bit for each lane instead, which is set if the lane's value is not 0.
uint64_t WarpExchange(WarpOperation operation, uint32_t mask, uint64_t value, int from, Site where);

// The block's array for `site`: `bytes` bytes, aligned to 16, NaN at first.
void* SharedArray(const void* site, const char* name, int64_t bytes);
// The launch's memory of shared_bytes, aligned to 16, NaN at first.
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
