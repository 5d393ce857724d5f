// The backend that an NN worker of a job uses, and the meter of its device.

#ifndef SATRAP_NN_WORKER_BACKEND_JOB_BACKEND_H_
#define SATRAP_NN_WORKER_BACKEND_JOB_BACKEND_H_

#include <memory>

#include "nn_worker/backend/backend.h"

namespace satrap {

class DeviceMeter;  // nn_worker/device/metered_device.h

struct JobBackend {
  std::unique_ptr<Backend> backend;
  std::shared_ptr<DeviceMeter> meter;  // null with device CPU
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_BACKEND_JOB_BACKEND_H_
