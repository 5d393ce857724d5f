// Makes the backend that the dense network of a rank runs on: the CPU or a device, as the job says.
//
// Not thread-safe; for the thread that starts the rank.

#ifndef SATRAP_NN_WORKER_RANK_BACKEND_H_
#define SATRAP_NN_WORKER_RANK_BACKEND_H_

#include "absl/status/statusor.h"
#include "common/role/role_runtime.h"
#include "common/thread/fork_join_pool.h"
#include "nn_worker/backend/job_backend.h"
#include "nn_worker/device_program.h"

namespace satrap {

// Logs how the CPU multiplies 16-bit values, because this decides whether they are faster than F32.
void LogProducts(const RoleRuntime& runtime);

// Call before the rank is ready. Then errors are found before any rank trains a step: a card that
// cannot be used or is too small, a missing library, or a plan above the job's limit. `devices` is
// null in the program that has only the CPU's backend; it refuses jobs for other devices
// (FAILED_PRECONDITION). `pool` outlives the backend.
absl::StatusOr<JobBackend> MakeRankBackend(const RoleRuntime& runtime, const DeviceProgram* devices,
                                           int card, ForkJoinPool* pool);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_RANK_BACKEND_H_
