// The memory of a device, as its Backend (backend.h) owns it, and the ways in and out for the host:
// copies, which every device has, and views, which spare the CPU its copies.
//
// Order. Copies are enqueued with the operations of the backend and run in call order; a call may
// return before its copy has run. Host memory given to CopyIn may be reused when CopyIn returns;
// host memory given to CopyOut is filled after the next Sync().
//
// Views. A backend that computes in host memory lets the host and its operations share memory,
// which saves copies. Views are optional: a caller that gets null copies instead. HostView and
// DeviceView are the only way for code outside the backends to avoid a copy.
//
// Errors. Only Allocate can fail.
//
// Thread-compatible: one thread at a time.

#ifndef SATRAP_NN_WORKER_BACKEND_DEVICE_MEMORY_H_
#define SATRAP_NN_WORKER_BACKEND_DEVICE_MEMORY_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "nn_worker/backend/tensor.h"

namespace satrap {

class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;

  // Memory of `bytes` bytes, zeroed, aligned to kAlignmentBytes, freed with the backend. Callers
  // allocate at the start, or when a part is larger than all before it. RESOURCE_EXHAUSTED if there
  // is not enough memory.
  virtual absl::StatusOr<void*> Allocate(int64_t bytes) = 0;
  // Copies of any dtype; tensor_copy.h has them with types. The rows of `host` have no gaps, those
  // of the tensor may. REQUIRES: host.size() == device.size_bytes()
  virtual void CopyIn(absl::Span<const uint8_t> host, Tensor device) = 0;
  virtual void CopyOut(Tensor device, absl::Span<uint8_t> host) = 0;
  // Returns when every operation and copy so far has run.
  virtual void Sync() = 0;

  // Where the host reads and writes what lies at `device`; null if it cannot. The view may be used
  // until the next operation is enqueued. REQUIRES: no operation since the last Sync
  virtual void* HostView(void* device) = 0;
  // Where operations read and write what lies at `host`, for the `data` of a tensor; null if they
  // cannot. The memory must stay, and the host must leave it alone, until the next Sync.
  virtual void* DeviceView(void* host) = 0;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_BACKEND_DEVICE_MEMORY_H_
