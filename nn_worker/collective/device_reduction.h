// Sums values in device memory over all ranks; the devices compute the sums. For everything else
// that ranks do together, they have a Collective (collective.h). Implementations: NewNcclReduction
// (nccl_collective.h), and for tests NewLocalReductions (local_reduction.h); each passes
// device_reduction_conformance.h.
//
// Every rank makes the same calls in the same order with the same counts. A sum has the same bits
// on every rank; each implementation states whether this also holds for every run.
//
// A sum is enqueued on a stream. A caller that waits for an event of that stream must call Poll
// while it waits, because a sum whose peer is lost may never end by itself. After any error, Abort
// included, the object is dead: every later call returns the same status.
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
  // Ends sums in progress, as Abort does.
  virtual ~DeviceReduction() = default;

  // Enqueues values[i] := the sum over ranks of values[i] on a stream of this rank's device.
  // `values`: [count] in device memory. UNAVAILABLE if a peer is lost, or the library refuses.
  virtual absl::Status AllReduceSum(DeviceStream* stream, float* values, int64_t count) = 0;

  // UNAVAILABLE if an error, such as the loss of a peer, was found after a sum was enqueued. Does
  // not wait.
  virtual absl::Status Poll() = 0;

  // Ends sums in progress, with unspecified values. If Abort is called again, the first status
  // stays. The other ranks get their own errors, or must be aborted, too. REQUIRES: !status.ok()
  virtual void Abort(absl::Status status) = 0;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_COLLECTIVE_DEVICE_REDUCTION_H_
