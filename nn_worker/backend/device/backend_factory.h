// Makes the backend for the NN workers of a job whose device is not the CPU. For the CPU, see
// cpu/cpu_job_backend.h. Like that file, this one is in the folder of the backend that it makes,
// although only programs and tests of whole plans use it.

#ifndef SATRAP_NN_WORKER_BACKEND_DEVICE_BACKEND_FACTORY_H_
#define SATRAP_NN_WORKER_BACKEND_DEVICE_BACKEND_FACTORY_H_

#include "absl/status/statusor.h"
#include "nn_worker/backend/device/device_room.h"
#include "nn_worker/backend/job_backend.h"
#include "proto/job.pb.h"

namespace satrap {

// The backend's memory limit is the job's device_memory_bytes. At its start the backend allocates
// as much memory for operations as `need` states. `card` is as for NewJobDevice (device_factory.h).
// Returns the errors of NewJobDevice and CheckDeviceRoom (device_room.h), before any memory is
// allocated; or RESOURCE_EXHAUSTED. REQUIRES: a validated job with device HOST or CUDA
absl::StatusOr<JobBackend> NewDeviceJobBackend(const NnWorkerConfig& config, int card,
                                               const DeviceNeed& need);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_BACKEND_DEVICE_BACKEND_FACTORY_H_
