// A Device that runs kernels and copies on the CPU, to find their faults before they run on a card,
// and to run programs without a card. docs/gpu.md says which faults it can and cannot show.
//
// An operation runs as late as the contract of device_stream.h allows: while an event is polled,
// while a stream is destroyed, or when too many operations are enqueued. Operations then run in the
// caller's thread, in an order of streams that ExecutionOrder decides, and device memory is
// accessible only while they run. So the host never sees a result that it has not waited for, and
// code that relies on an order of streams which it does not enforce gives a wrong result in some of
// the orders.
//
// REQUIRES: pinned pointers are in memory from AllocatePinned; memory is freed only when nothing is
// enqueued. Otherwise a CHECK fails, as for the faults that block_runner.h and guarded_memory.h
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
  // The number of threads that run blocks of a kernel at the same time. More than 1 is faster, but
  // then the order of the blocks, and of atomic additions, differs from run to run.
  int threads = 1;
  // The limit for device and pinned memory together.
  int64_t memory_bytes = int64_t{4} << 30;
};

std::unique_ptr<Device> NewHostDevice(const HostDeviceOptions& options);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_DEVICE_HOST_HOST_DEVICE_H_
