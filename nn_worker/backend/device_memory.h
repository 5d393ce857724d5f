// The memory of a device, owned by its Backend (backend.h), and the ways in which the host accesses
// it: copies, which every device has, and views, with which the CPU needs no copies.
//
// Queues. Operations and copies run in one of three queues, and a call may return before its work
// has run. A queue runs its work in call order. Different queues run at the same time, except where
// WaitFor orders them. Work enqueued by EnqueueBeside runs in none of the queues, and Sync does not
// wait for it.
//
// CopyIn and CopyOut run in the queue of the operations. Host memory given to CopyIn may be reused
// when CopyIn returns; host memory given to CopyOut is filled when an event recorded after the call
// happens, or when the next Sync() returns. StartCopyIn and StartCopyOut have their own queues and
// work only with pinned memory. Callers record an event there after the call. Until it happens, or
// until the next Sync(), the caller may read but not change the memory given to StartCopyIn, and
// must not touch the memory given to StartCopyOut.
//
// Views. A backend that computes in host memory lets the host and its operations share memory,
// which saves copies. Views are optional: a caller that gets null must copy instead. HostView and
// DeviceView are the only way for code outside the backends to avoid a copy.
//
// Errors. Only calls that return a status can fail. An error of the device is permanent: every
// later Poll returns it. A refused graph is not such an error.
//
// Threads. Only one thread at a time may use a queue. The allocations, NewEvent, IsPinned,
// DeviceView and Poll are thread-safe, so that one thread can copy the next part in while another
// trains the current part. Only the thread of the operations may call Sync and HostView.

#ifndef SATRAP_NN_WORKER_BACKEND_DEVICE_MEMORY_H_
#define SATRAP_NN_WORKER_BACKEND_DEVICE_MEMORY_H_

#include <cstdint>
#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/buffer.h"
#include "nn_worker/backend/tensor.h"

namespace satrap {

enum class DeviceQueue {
  kOperations,  // the operations of the backend, CopyIn, CopyOut
  kCopiesIn,    // StartCopyIn
  kCopiesOut    // StartCopyOut
};

// Marks a point in a queue. Belongs to the backend that made it, and must be destroyed before that
// backend.
class BackendEvent {
 public:
  virtual ~BackendEvent() = default;
};

class DeviceStream;  // nn_worker/device/device_stream.h

// Operations recorded together, which can be enqueued again in one call. Must be destroyed before
// its backend.
class OperationGraph {
 public:
  virtual ~OperationGraph() = default;
};

class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;

  // Allocates `bytes` bytes, zeroed and aligned to kAlignmentBytes. They are freed with the
  // backend. Callers allocate at the start, or when a part is larger than all previous ones.
  // RESOURCE_EXHAUSTED if there is not enough memory.
  virtual absl::StatusOr<void*> Allocate(int64_t bytes) = 0;
  // Like Allocate, but allocates page-locked memory of the host. StartCopyIn and StartCopyOut need
  // such memory.
  virtual absl::StatusOr<void*> AllocatePinned(int64_t bytes) = 0;
  // An allocator of Buffers in pinned memory, so that a payload can be copied to the device from
  // where it was received. Null if any memory counts as pinned.
  virtual std::shared_ptr<BufferAllocator> PinnedBuffers() = 0;
  // Whether [host, host + bytes) is memory from AllocatePinned or PinnedBuffers.
  virtual bool IsPinned(const void* host, int64_t bytes) const = 0;

  // Copies of any dtype; tensor_copy.h has typed versions. The rows of `host` have no gaps; those
  // of the tensor may have gaps. REQUIRES: host.size() == device.size_bytes()
  virtual void CopyIn(absl::Span<const uint8_t> host, Tensor device) = 0;
  virtual void CopyOut(Tensor device, absl::Span<uint8_t> host) = 0;
  // REQUIRES: what CopyIn and CopyOut require; the host's memory is pinned; the tensor has no gaps
  virtual void StartCopyIn(absl::Span<const uint8_t> pinned, Tensor device) = 0;
  virtual void StartCopyOut(Tensor device, absl::Span<uint8_t> pinned) = 0;

  virtual absl::StatusOr<std::unique_ptr<BackendEvent>> NewEvent() = 0;
  // Makes `event` mark this point of the queue. The event has happened when everything enqueued
  // there before this call has run.
  virtual void Record(DeviceQueue queue, BackendEvent* event) = 0;
  // Everything enqueued in the queue from now on runs after `event`, as last recorded before this
  // call. An event that was never recorded counts as having happened.
  virtual void WaitFor(DeviceQueue queue, BackendEvent* event) = 0;
  // Whether `event`, as last recorded, has happened. Does not wait.
  virtual absl::StatusOr<bool> Poll(BackendEvent* event) = 0;
  // Returns when everything enqueued so far has run, in all queues. Sync cannot be ended early, so
  // training steps wait for events instead (AwaitEvent).
  virtual void Sync() = 0;

  // The address at which the host can access the memory at `device`. Null if the host cannot access
  // this backend's memory; then every call returns null. The view is valid until the next operation
  // or copy that uses memory of the same allocation is enqueued. REQUIRES: no operation since the
  // last Sync
  virtual void* HostView(void* device) = 0;
  // The address at which operations can access the memory at `host`, for the `data` of a tensor;
  // null if they cannot access it. Until the operations that use the address have run, the memory
  // must exist and the host must not touch it.
  virtual void* DeviceView(void* host) = 0;

  // Calls `enqueue` with a stream of the device, for work that is not an operation, such as a sum
  // over ranks. The work runs after the operations enqueued so far, and at the same time as later
  // ones; `done` happens when it has run. Returns the error of `enqueue`; UNIMPLEMENTED without a
  // device. Only the thread of the operations may call this.
  virtual absl::Status EnqueueBeside(absl::FunctionRef<absl::Status(DeviceStream*)> enqueue,
                                     BackendEvent* done);

  // A graph of operations costs the host less time than its operations one by one. Such a graph
  // repeats its operations with the same arguments and lists of tensors, and reads the current
  // values in memory. Only the thread of the operations may call GraphEpoch, Capture and Enqueue.
  // The epoch changes whenever lists that the network's operations have read are overwritten; it is
  // always -1 if the backend makes no graphs.
  virtual int64_t GraphEpoch() const { return -1; }
  // Makes a graph of the operations that `enqueue` enqueues; they do not run. A CHECK fails if
  // `enqueue` copies between host and device, uses events, allocates, or needs a list that no
  // operation of this epoch has read. Returns the error of `enqueue`, or INTERNAL if the device
  // refuses. REQUIRES: GraphEpoch() >= 0
  virtual absl::StatusOr<std::unique_ptr<OperationGraph>> Capture(
      absl::FunctionRef<absl::Status()> enqueue);
  // Enqueues a graph. REQUIRES: the epoch has not changed since its capture
  virtual void Enqueue(OperationGraph* graph);

  // These call Device::BeginRange and EndRange, and do nothing without a device. Thread-safe.
  virtual void BeginRange(const char* /*name*/) {}
  virtual void EndRange() {}
};

// A range that profilers show, which lasts as long as this object. `memory` must outlive it.
class ProfilerRange {
 public:
  ProfilerRange(DeviceMemory* memory, const char* name) : memory_(memory) {
    memory_->BeginRange(name);
  }
  ~ProfilerRange() { memory_->EndRange(); }
  ProfilerRange(const ProfilerRange&) = delete;
  ProfilerRange& operator=(const ProfilerRange&) = delete;

 private:
  DeviceMemory* const memory_;
};

// Polls until `event` has happened. DEADLINE_EXCEEDED after `timeout_ms`; CANCELLED as soon as
// `aborted` returns true; the error of the device if it has failed. After DEADLINE_EXCEEDED and
// CANCELLED the event may still happen, and the caller may wait for it again.
absl::Status AwaitEvent(DeviceMemory* device, BackendEvent* event, int64_t timeout_ms,
                        absl::FunctionRef<bool()> aborted);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_BACKEND_DEVICE_MEMORY_H_
