// Sums of device memory over the ranks, by NCCL. Each rank has a card of its own. What else ranks do
// together stays with Collective (collective.h), beside it.
//
// Every rank makes the same calls in the same order with the same counts. A sum has the same bits on
// every rank, and on every run on the same cards.
//
// Only NewNcclReduction and the first sum wait for other ranks, and both can be aborted. A sum is enqueued
// on a stream, and whoever waits for an event of that stream calls Poll in between, because a sum whose
// peer is lost never ends by itself. After any error, Abort included, the object is dead: every later
// call returns the same status.
//
// Thread-compatible, except for Abort, which any thread may call at any time.

#ifndef SATRAP_NN_WORKER_COLLECTIVE_NCCL_COLLECTIVE_H_
#define SATRAP_NN_WORKER_COLLECTIVE_NCCL_COLLECTIVE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/role/rendezvous_store.h"
#include "nn_worker/device/device_stream.h"

namespace satrap {

class DeviceReduction {
 public:
  virtual ~DeviceReduction() = default;

  // Enqueues values[i] := the sum over ranks of values[i] on a stream of this rank's CudaDevice.
  // UNAVAILABLE if NCCL refuses.
  virtual absl::Status AllReduceSum(DeviceStream* stream, float* values, int64_t count) = 0;

  // UNAVAILABLE if NCCL has found an error since, such as a lost peer. Does not wait.
  virtual absl::Status Poll() = 0;

  // Ends sums that are under way, with unspecified values. Of several statuses the first stays.
  // REQUIRES: !status.ok()
  virtual void Abort(absl::Status status) = 0;
};

struct NcclOptions {
  int rank = 0;
  int size = 1;
  int card = 0;  // of this rank
  // Keys begin with it: one for each generation of the job.
  std::string prefix;
  int64_t connect_timeout_ms = 60000;
  std::string library = "libnccl.so.2";
};

// Connects to all other ranks. `store` is used during the call only. UNIMPLEMENTED in a build without
// CUDA; FAILED_PRECONDITION if the library is missing or the card cannot be used; UNAVAILABLE if NCCL
// fails; DEADLINE_EXCEEDED after `connect_timeout_ms`; CANCELLED soon after `aborted` returns true.
absl::StatusOr<std::unique_ptr<DeviceReduction>> NewNcclReduction(
    const NcclOptions& options, RendezvousStore* store, absl::FunctionRef<bool()> aborted);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_COLLECTIVE_NCCL_COLLECTIVE_H_
