// Makes the backend that a job's NN workers compute on.

#ifndef SATRAP_NN_WORKER_BACKEND_BACKEND_FACTORY_H_
#define SATRAP_NN_WORKER_BACKEND_BACKEND_FACTORY_H_

#include "absl/status/statusor.h"
#include "common/thread/fork_join_pool.h"
#include "nn_worker/backend/device_room.h"
#include "nn_worker/backend/job_backend.h"
#include "proto/job.pb.h"

namespace satrap {

// With device CPU as NewCpuJobBackend (cpu_job_backend.h). With HOST and CUDA a device's backend with the job's device_memory_bytes as its
// limit, and with the memory of operations that `need` says. `card` is that of NewJobDevice
// (device_factory.h). Errors as NewJobDevice and CheckDeviceRoom (device_room.h), which come before
// any memory is taken; and RESOURCE_EXHAUSTED. REQUIRES: a validated job
absl::StatusOr<JobBackend> NewJobBackend(const NnWorkerConfig& config, int card,
                                         const DeviceNeed& need, ForkJoinPool* pool);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_BACKEND_BACKEND_FACTORY_H_
