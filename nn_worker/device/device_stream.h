// A DeviceStream runs operations on a device, one after another in the order of the calls. Each
// call enqueues an operation and returns before it has run; it waits for earlier operations only if
// the queue is full. Operations of different streams run in any order, except where WaitFor orders
// them. Kernel sources include this header, so it uses only the standard library's integers.
//
// Memory. `device` and `pinned` pointers lie within an allocation of the stream's device
// (device.h). Until an operation has run, the memory that it reads must not change, and the memory
// that it writes must not be read. An Event recorded after the operation shows when it has run.
//
// Errors. A call that breaks a contract fails a CHECK. An error of the device itself is permanent:
// every later wait returns it.
//
// Thread-compatible: only one thread at a time may use a stream, and all streams and events must be
// destroyed before their device.

#ifndef SATRAP_NN_WORKER_DEVICE_DEVICE_STREAM_H_
#define SATRAP_NN_WORKER_DEVICE_DEVICE_STREAM_H_

#include <cstdint>

namespace satrap {

class Event;

// An index of a block or thread, or an extent of a grid or block.
struct Dim3 {
  uint32_t x = 1, y = 1, z = 1;
  int64_t volume() const { return static_cast<int64_t>(x) * y * z; }
};

// A kernel with its arguments, made by Launch (kernel.h).
struct KernelLaunch {
  const char* signature;    // of a function that the compiler names after the kernel
  void (*entry)();          // what the device starts; only the device knows its type
  Dim3 grid;                // blocks
  Dim3 block;               // threads, at most 1024
  int64_t shared_bytes;     // of DynamicShared, beside the arrays that the kernel declares
  const void* const* args;  // [num_args]; copied by DeviceStream::Launch
  const int32_t* arg_bytes;
  int num_args;
};

class DeviceStream {
 public:
  // Runs the operations that are still enqueued, and waits for them.
  virtual ~DeviceStream() = default;

  // REQUIRES, for all copies: `bytes` >= 0, and source and target do not overlap. If `bytes` is 0,
  // the pointers may be null.
  virtual void CopyIn(const void* pinned, void* device, int64_t bytes) = 0;
  virtual void CopyOut(const void* device, void* pinned, int64_t bytes) = 0;
  virtual void CopyWithin(const void* from, void* to, int64_t bytes) = 0;  // device to device
  // REQUIRES: no extent of grid or block is 0; at most 1024 threads in a block, and 64 in z; at
  // most 65535 blocks in y and in z; at most 48 KiB of shared memory
  virtual void Launch(const KernelLaunch& launch) = 0;

  // Makes `event` mark this point of the stream. The event has happened when everything enqueued
  // here before this call has run.
  virtual void Record(Event* event) = 0;
  // Everything enqueued here from now on runs after `event`, as last recorded before this call. An
  // event that was never recorded counts as having happened.
  virtual void WaitFor(Event* event) = 0;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_DEVICE_DEVICE_STREAM_H_
