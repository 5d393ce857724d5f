// A BlockRunner runs the blocks of kernels in the thread that calls it, one block at a time. The
// threads of a block are fibers: a thread runs until it waits for others (at a barrier or a
// shuffle) or leaves the kernel, and then the next thread runs. All lanes of a warp run as far as
// they can before the next warp begins. ExecutionOrder gives the order of the threads; a seeded
// order has a new permutation after each barrier.
//
// Fails a CHECK, with kernel, block, thread and the line in the kernel's source, when
//   - a thread leaves the kernel while others wait at a barrier,
//   - threads of a block wait at different barriers,
//   - a mask names a lane that has left, never existed, or waits at a barrier or with another mask,
//   - shared memory exceeds 48 KiB or is written past the end of an array.
//
// Thread-compatible.

#ifndef SATRAP_NN_WORKER_DEVICE_HOST_BLOCK_RUNNER_H_
#define SATRAP_NN_WORKER_DEVICE_HOST_BLOCK_RUNNER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "nn_worker/device/device_stream.h"
#include "nn_worker/device/host/execution_order.h"
#include "nn_worker/device/host/fiber.h"
#include "nn_worker/device/host/kernel_thread.h"
#include "nn_worker/device/host/shared_memory.h"

namespace satrap::host {

class BlockRunner {
 public:
  // Kernels may access `memory`, which must outlive this object.
  BlockRunner(ExecutionOrder order, GuardedMemory* memory);
  ~BlockRunner();

  // Runs one block. REQUIRES: launch.block has 1 to 1024 threads
  void Run(const KernelLaunch& launch, Dim3 block_index);

  // These are the calls of kernel_thread.h, made by the running thread of the kernel.
  void Barrier(Site where);
  uint64_t WarpExchange(WarpOperation operation, uint32_t mask, uint64_t value, int from,
                        Site where);
  void* SharedArray(const void* site, const char* name, int64_t bytes);
  void* DynamicShared();

 private:
  enum class State { kNotStarted, kReady, kAtBarrier, kInWarp, kLeft };
  struct Thread : KernelThread {
    State state = State::kNotStarted;
    Fiber* fiber = nullptr;
    Site where;  // where it waits
    WarpOperation operation = WarpOperation::kSync;
    uint32_t mask = 0;
    uint64_t value = 0;  // given; then the result
    int from = 0;
  };

  static void FiberBody(void* runner);
  void RunWarp(int warp, uint64_t pass);
  Thread* NextNotStarted();
  void Resume(Thread* thread);
  void Wait(Thread* thread, State state, Site where);
  bool CompleteWarpOperations(int warp);
  void Exchange(int warp, uint32_t mask, WarpOperation operation);
  void PassBarrier();
  [[noreturn]] void FailWarp(const Thread& waits, const Thread* absent, int lane) const;
  int LanesOf(int warp) const;

  const ExecutionOrder order_;
  const KernelLaunch* launch_ = nullptr;
  Block block_;
  uint64_t block_number_ = 0;
  std::vector<Thread> threads_;
  int num_threads_ = 0;
  int not_left_ = 0;
  SharedMemory shared_;

  // The running warp, and which of its lanes start next.
  int warp_ = 0;
  int next_to_start_ = 0;
  Permutation lanes_{{}, 1, 0};

  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> idle_;
  Fiber* running_ = nullptr;
};

// Returns, for example, "kernel Fill<float>, block (1, 0, 0), thread (33, 0, 0)".
std::string DescribeThread(const KernelThread& thread);
// The name of the kernel in a KernelLaunch::signature, without namespaces.
std::string KernelName(const char* signature);

}  // namespace satrap::host

#endif  // SATRAP_NN_WORKER_DEVICE_HOST_BLOCK_RUNNER_H_
