// DeviceReduction by NCCL, from card to card. Each rank has its own card. NCCL chooses the order of
// summation when it connects, so a sum has the same bits on every rank, but not always on every
// run. Apart from NewNcclReduction, only the call of the first sum waits for other ranks; Abort
// ends this wait.

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

inline constexpr char kNcclLibrary[] = "libnccl.so.2";

struct NcclOptions {
  int rank = 0;
  int size = 1;
  int card = 0;  // of this rank
  // The prefix of all keys in the store, different for each generation of the job.
  std::string prefix;
  int64_t connect_timeout_ms = 60000;  // for NewNcclReduction as a whole
  std::string library = kNcclLibrary;
};

// Checks that the library can be loaded: UNIMPLEMENTED or FAILED_PRECONDITION as for
// NewNcclReduction. Does not wait.
absl::Status CheckNccl(const std::string& library = kNcclLibrary);

// Connects to all other ranks. `store` is used during the call only. UNIMPLEMENTED in a build
// without CUDA; FAILED_PRECONDITION if the library is missing or the card cannot be used;
// UNAVAILABLE if NCCL fails; DEADLINE_EXCEEDED after `connect_timeout_ms`; CANCELLED soon after
// `aborted` returns true.
absl::StatusOr<std::unique_ptr<DeviceReduction>> NewNcclReduction(
    const NcclOptions& options, RendezvousStore* store, absl::FunctionRef<bool()> aborted);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_COLLECTIVE_NCCL_COLLECTIVE_H_
