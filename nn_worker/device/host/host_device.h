// A Device that runs kernels and copies on the CPU, to find what is wrong with them before a card
// runs them, and to run everything without one. docs/gpu.md says what it shows and what it cannot
// show.
//
// An operation runs as late as the contract of device_stream.h allows: while an event is polled, a
// stream is destroyed, or too many operations are enqueued. They then run in the caller's thread,
// in an order of streams that ExecutionOrder decides, and only then is device memory accessible. So
// the host never sees a result that it has not waited for, and streams do not happen to run in an
// order that nothing enforces.
//
// REQUIRES: pinned pointers lie in memory from AllocatePinned; memory is freed when nothing is
// enqueued. Fails a CHECK otherwise, as for everything that block_runner.h and guarded_memory.h
// find.
//
// Thread-safe.

#ifndef SATRAP_NN_WORKER_DEVICE_HOST_HOST_DEVICE_H_
#define SATRAP_NN_WORKER_DEVICE_HOST_HOST_DEVICE_H_

#include <cstdint>
#include <memory>

#include "nn_worker/device/device.h"
#include "nn_worker/device/host/execution_order.h"

namespace satrap {

struct HostDeviceOptions {
  host::ExecutionOrder order;
  // Threads that run the blocks of a kernel at once. More than 1 is faster, but then the order of
  // the blocks, and of atomic additions, differs from run to run.
  int threads = 1;
  // Device and pinned memory together.
  int64_t memory_bytes = int64_t{4} << 30;
};

std::unique_ptr<Device> NewHostDevice(const HostDeviceOptions& options);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_DEVICE_HOST_HOST_DEVICE_H_
