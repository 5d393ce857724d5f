// Sums of device memory over the ranks, made by the devices. What else ranks do together stays with
// Collective (collective.h), beside it. Implementations: NewNcclReduction (nccl_collective.h), and
// for tests NewLocalReductions (local_reduction.h); each passes device_reduction_conformance.h.
//
// Every rank makes the same calls in the same order with the same counts. A sum has the same bits
// on every rank; whether also on every run is the implementation's to say.
//
// A sum is enqueued on a stream. Whoever waits for an event of that stream calls Poll in between,
// because a sum whose peer is lost may never end by itself. After any error, Abort included, the
// object is dead: every later call returns the same status.
//
// Thread-compatible, except for Abort, which any thread may call at any time.

#ifndef SATRAP_NN_WORKER_COLLECTIVE_DEVICE_REDUCTION_H_
#define SATRAP_NN_WORKER_COLLECTIVE_DEVICE_REDUCTION_H_

#include <cstdint>

#include "absl/status/status.h"
#include "nn_worker/device/device_stream.h"

namespace satrap {

class DeviceReduction {
 public:
  // Ends sums that are under way, as Abort does.
  virtual ~DeviceReduction() = default;

  // Enqueues values[i] := the sum over ranks of values[i] on a stream of this rank's device.
  // `values`: [count] in device memory. UNAVAILABLE if a peer is lost, or the library refuses.
  virtual absl::Status AllReduceSum(DeviceStream* stream, float* values, int64_t count) = 0;

  // UNAVAILABLE if an error has been found since, such as a lost peer. Does not wait.
  virtual absl::Status Poll() = 0;

  // Ends sums that are under way, with unspecified values. Of several statuses the first stays. The
  // other ranks get an error of their own, or must be aborted too. REQUIRES: !status.ok()
  virtual void Abort(absl::Status status) = 0;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_COLLECTIVE_DEVICE_REDUCTION_H_
