// DeviceReduction by NCCL: from card to card. Each rank has a card of its own. A sum has the same bits on
// every run on the same cards. Besides NewNcclReduction only the first sum waits for other ranks, and
// Abort ends it.

#ifndef SATRAP_NN_WORKER_COLLECTIVE_NCCL_COLLECTIVE_H_
#define SATRAP_NN_WORKER_COLLECTIVE_NCCL_COLLECTIVE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/role/rendezvous_store.h"
#include "nn_worker/collective/device_reduction.h"

namespace satrap {

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
