// Makes the backend of a device that a job's NN workers compute on. cpu/cpu_job_backend.h makes
// that of the CPU.

#ifndef SATRAP_NN_WORKER_BACKEND_DEVICE_BACKEND_FACTORY_H_
#define SATRAP_NN_WORKER_BACKEND_DEVICE_BACKEND_FACTORY_H_

#include "absl/status/statusor.h"
#include "nn_worker/backend/device/device_room.h"
#include "nn_worker/backend/job_backend.h"
#include "proto/job.pb.h"

namespace satrap {

// The backend has the job's device_memory_bytes as its limit, and the memory of operations that
// `need` says. `card` is that of NewJobDevice (device_factory.h). Errors as NewJobDevice and
// CheckDeviceRoom (device_room.h), which come before any memory is taken; and RESOURCE_EXHAUSTED.
// REQUIRES: a validated job with device HOST or CUDA
absl::StatusOr<JobBackend> NewDeviceJobBackend(const NnWorkerConfig& config, int card,
                                               const DeviceNeed& need);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_BACKEND_DEVICE_BACKEND_FACTORY_H_
