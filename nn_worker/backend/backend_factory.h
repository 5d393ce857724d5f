// Makes the backend that a job's NN workers compute on.

#ifndef SATRAP_NN_WORKER_BACKEND_BACKEND_FACTORY_H_
#define SATRAP_NN_WORKER_BACKEND_BACKEND_FACTORY_H_

#include <memory>

#include "absl/status/statusor.h"
#include "nn_worker/backend/backend.h"
#include "nn_worker/backend/device_room.h"
#include "nn_worker/backend/fork_join_pool.h"
#include "proto/job.pb.h"

namespace satrap {

class DeviceMeter;  // nn_worker/device/metered_device.h

struct JobBackend {
  std::unique_ptr<Backend> backend;
  std::shared_ptr<DeviceMeter> meter;  // null with device CPU
};

// With device CPU, CpuBackend or CpuHalfBackend as the precision asks, on `pool`, which must
// outlive it. With HOST and CUDA a device's backend with the job's device_memory_bytes as its
// limit, and with the memory of operations that `need` says. `card` is that of NewJobDevice
// (device_factory.h). Errors as NewJobDevice and CheckDeviceRoom (device_room.h), which come before
// any memory is taken; and RESOURCE_EXHAUSTED. REQUIRES: a validated job
absl::StatusOr<JobBackend> NewJobBackend(const NnWorkerConfig& config, int card,
                                         const DeviceNeed& need, ForkJoinPool* pool);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_BACKEND_BACKEND_FACTORY_H_
