// The memory of a device, as its Backend (backend.h) owns it, and the ways in and out for the host:
// copies, which every device has, and views, with which the CPU needs no copies.
//
// Queues. What is enqueued runs in one of three queues, and a call may return before it has run. A
// queue runs in call order. Queues run beside one another, except where WaitFor orders them. What
// EnqueueBeside enqueues runs in none of them, and Sync does not wait for it.
//
// CopyIn and CopyOut go with the operations. Host memory given to CopyIn may be reused when CopyIn
// returns; host memory given to CopyOut is filled once an event recorded after it has happened, or
// after the next Sync(). StartCopyIn and StartCopyOut have queues of their own, copy from and to
// pinned memory only, and leave it in use until such an event.
//
// Views. A backend that computes in host memory lets the host and its operations share memory,
// which saves copies. Views are optional: a caller that gets null copies instead. HostView and
// DeviceView are the only way for code outside the backends to avoid a copy.
//
// Errors. Only calls that return a status can fail. An error of the device ends it: every later
// Poll returns it. A graph that the device refuses is no such error.
//
// Threads. One thread at a time uses a queue. The allocations, NewEvent, IsPinned, DeviceView and
// Poll are thread-safe, so that one thread can copy the next part in while another trains this one.
// Sync and HostView belong to the thread of the operations.

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

// A point of a queue. Belongs to the backend that made it, and is destroyed before it.
class BackendEvent {
 public:
  virtual ~BackendEvent() = default;
};

class DeviceStream;  // nn_worker/device/device_stream.h

// Operations that were enqueued once, to be enqueued again as one. Destroyed before its backend.
class OperationGraph {
 public:
  virtual ~OperationGraph() = default;
};

class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;

  // Memory of `bytes` bytes, zeroed, aligned to kAlignmentBytes, freed with the backend. Callers
  // allocate at the start, or when a part is larger than all before it. RESOURCE_EXHAUSTED if there
  // is not enough memory.
  virtual absl::StatusOr<void*> Allocate(int64_t bytes) = 0;
  // As Allocate, but page-locked memory of the host, which StartCopyIn and StartCopyOut need.
  virtual absl::StatusOr<void*> AllocatePinned(int64_t bytes) = 0;
  // Makes Buffers in pinned memory, so that a payload can be copied in from where it was received.
  // Null if ordinary memory is as good.
  virtual std::shared_ptr<BufferAllocator> PinnedBuffers() = 0;
  // Whether [host, host + bytes) is memory of AllocatePinned or PinnedBuffers.
  virtual bool IsPinned(const void* host, int64_t bytes) const = 0;

  // Copies of any dtype; tensor_copy.h has them with types. The rows of `host` have no gaps, those
  // of the tensor may. REQUIRES: host.size() == device.size_bytes()
  virtual void CopyIn(absl::Span<const uint8_t> host, Tensor device) = 0;
  virtual void CopyOut(Tensor device, absl::Span<uint8_t> host) = 0;
  // REQUIRES: as above; the host's memory is pinned, the tensor has no gaps
  virtual void StartCopyIn(absl::Span<const uint8_t> pinned, Tensor device) = 0;
  virtual void StartCopyOut(Tensor device, absl::Span<uint8_t> pinned) = 0;

  virtual absl::StatusOr<std::unique_ptr<BackendEvent>> NewEvent() = 0;
  // From now on `event` marks this point of the queue: it has happened when everything that was
  // enqueued there before has run.
  virtual void Record(DeviceQueue queue, BackendEvent* event) = 0;
  // What is enqueued in the queue from now on runs after `event`, as it was last recorded at the
  // time of this call. An event that was never recorded has happened.
  virtual void WaitFor(DeviceQueue queue, BackendEvent* event) = 0;
  // Whether `event`, as it was last recorded, has happened. Does not wait.
  virtual absl::StatusOr<bool> Poll(BackendEvent* event) = 0;
  // Returns when everything so far has run, in all queues. Cannot be ended early: the path of a
  // step waits for events instead (AwaitEvent).
  virtual void Sync() = 0;

  // Where the host reads and writes what lies at `device`; null if it cannot, and then always. The
  // view may be used until an operation or copy is enqueued that is given memory of the same
  // allocation. REQUIRES: no operation since the last Sync
  virtual void* HostView(void* device) = 0;
  // Where operations read and write what lies at `host`, for the `data` of a tensor; null if they
  // cannot. The memory must stay, and the host must leave it alone, until they have run.
  virtual void* DeviceView(void* host) = 0;

  // Calls `enqueue` with a stream of the device, for work that is no operation, such as a sum over
  // ranks. It runs after the operations so far and beside later ones; `done` happens when it has
  // run. The error of `enqueue`; UNIMPLEMENTED without a device. For the thread of the operations.
  virtual absl::Status EnqueueBeside(absl::FunctionRef<absl::Status(DeviceStream*)> enqueue,
                                     BackendEvent* done);

  // Graphs of operations cost the host less time than operations one by one. A graph repeats them
  // with the same arguments and lists of tensors, and reads memory as it then is. All three calls
  // belong to the thread of the operations. The epoch changes whenever lists that operations of the
  // network have read are overwritten; it is always -1 if the backend makes no graphs.
  virtual int64_t GraphEpoch() const { return -1; }
  // Makes a graph of what `enqueue` enqueues, none of which runs. Copies between host and device,
  // events, allocations and lists that no operation of this epoch has read fail a CHECK. Returns
  // the error of `enqueue`, or INTERNAL if the device refuses. REQUIRES: GraphEpoch() >= 0
  virtual absl::StatusOr<std::unique_ptr<OperationGraph>> Capture(
      absl::FunctionRef<absl::Status()> enqueue);
  // Enqueues a graph. REQUIRES: the epoch is that of its capture
  virtual void Enqueue(OperationGraph* graph);

  // As Device::BeginRange and EndRange, where there is a device. Thread-safe.
  virtual void BeginRange(const char* /*name*/) {}
  virtual void EndRange() {}
};

// A range of a profiler, for the life of this object. The memory outlives it.
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
// CANCELLED the event may still happen, and may be waited for again.
absl::Status AwaitEvent(DeviceMemory* device, BackendEvent* event, int64_t timeout_ms,
                        absl::FunctionRef<bool()> aborted);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_BACKEND_DEVICE_MEMORY_H_
