// A Device owns an accelerator's memory and makes the streams that run kernels and copies on it.
// The host accesses device memory only by copies. Implementations: host/host_device.h, which runs
// kernels on the CPU, and cuda/cuda_device.h. Matrix products are not part of it; they are in
// nn_worker/products/products.h.
//
// WaitForEvent polls, so a wait for results can always be ended early. Two other calls wait and
// cannot be ended early: destroying a stream waits for all its operations, and enqueueing into a
// full queue waits for the oldest operations.
//
// Thread-safe. Streams and events are thread-compatible. Memory, streams and events must be
// destroyed before their device.

#ifndef SATRAP_NN_WORKER_DEVICE_DEVICE_H_
#define SATRAP_NN_WORKER_DEVICE_DEVICE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nn_worker/device/device_stream.h"

namespace satrap {

// An allocation, which is freed with this object. REQUIRES, at its destruction: every operation
// enqueued on the device has run
class Memory {
 public:
  virtual ~Memory() = default;
  virtual void* data() const = 0;
  virtual int64_t bytes() const = 0;
};

// Marks a point in a stream (DeviceStream::Record). May be recorded again.
class Event {
 public:
  virtual ~Event() = default;
  // Whether the point that was recorded last has been reached; true if none was recorded. Returns
  // the error of the device if it has failed. Does not wait.
  virtual absl::StatusOr<bool> Poll() = 0;
};

// A recorded sequence of operations that can be enqueued again as one operation (Device::Capture).
// It may be destroyed at any time, even while a launch of it runs, but must be destroyed before the
// memory that its operations use and before its device.
class StreamGraph {
 public:
  virtual ~StreamGraph() = default;
  // Enqueues the graph on a stream of the same device. The operations run in their order, with the
  // arguments with which they were captured.
  virtual void Launch(DeviceStream* stream) = 0;
};

// Device memory at one moment. Memory that other programs use does not count as free.
struct DeviceRoom {
  std::string device;  // as messages name it: "card 0 (NVIDIA H100)"
  int64_t total_bytes = 0;
  int64_t free_bytes = 0;
};

// An operation of a trace (Device::BeginTrace).
struct TracedOperation {
  // The signature of a kernel (KernelLaunch), "copy", "graph", or "library" for an operation that a
  // library enqueued.
  const char* name = nullptr;
  double us = 0;
};

class Device {
 public:
  virtual ~Device() = default;

  // Returns the error of the device if it has failed.
  virtual absl::StatusOr<DeviceRoom> Room() = 0;
  // Allocate and AllocatePinned return `bytes` bytes, aligned to 64, with undefined contents.
  // RESOURCE_EXHAUSTED if there is not enough memory. Callers allocate at the start, never during a
  // step.
  virtual absl::StatusOr<std::unique_ptr<Memory>> Allocate(int64_t bytes) = 0;
  // Allocates host memory that copies can use.
  virtual absl::StatusOr<std::unique_ptr<Memory>> AllocatePinned(int64_t bytes) = 0;

  // INTERNAL if the device refuses.
  virtual absl::StatusOr<std::unique_ptr<DeviceStream>> NewStream() = 0;
  // A stream whose operations begin before the waiting operations of other streams, if the device
  // can do that.
  virtual absl::StatusOr<std::unique_ptr<DeviceStream>> NewUrgentStream() { return NewStream(); }
  virtual absl::StatusOr<std::unique_ptr<Event>> NewEvent() = 0;

  // Makes a graph of the operations that `enqueue` enqueues on `stream`; they do not run. `enqueue`
  // may call only Launch and CopyWithin of that stream, and must not allocate; other threads must
  // not use the stream meanwhile. INTERNAL if the device refuses the graph, after which the device
  // remains usable; the error of the device if it has failed.
  virtual absl::StatusOr<std::unique_ptr<StreamGraph>> Capture(
      DeviceStream* stream, absl::FunctionRef<void()> enqueue) = 0;

  // Measures, for profiles, the operations that are enqueued from now on. UNIMPLEMENTED if the
  // device measures no times; the error of the device if it has failed. REQUIRES: until EndTrace
  // only the calling thread uses the device
  virtual absl::Status BeginTrace();
  // Waits for the operations since BeginTrace and returns them in the order in which they were
  // enqueued. The time of an operation ends where the next one of its stream begins, so it includes
  // the gap between them. A graph counts as one operation. REQUIRES: BeginTrace was OK
  virtual absl::StatusOr<std::vector<TracedOperation>> EndTrace();

  // Names the activity of the calling thread until EndRange, for profilers that show it next to the
  // device's own work. Ranges of a thread must end in the reverse of the order in which they began.
  // By default these calls do nothing. `name` must outlive the device.
  virtual void BeginRange(const char* /*name*/) {}
  virtual void EndRange() {}
};

// Polls until `event` has happened. DEADLINE_EXCEEDED after `timeout_ms`; CANCELLED as soon as
// `aborted` returns true; the error of the device if it has failed. After an error the event may
// still happen, and the caller may wait for it again.
absl::Status WaitForEvent(Event* event, int64_t timeout_ms, absl::FunctionRef<bool()> aborted);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_DEVICE_DEVICE_H_
