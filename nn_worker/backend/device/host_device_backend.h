// DeviceBackend on HostDevice, with the products of our own kernel: everything that a card runs
// except its libraries, on the CPU and slowly. For tests, and for a look at a model without a card.

#ifndef SATRAP_NN_WORKER_BACKEND_DEVICE_HOST_DEVICE_BACKEND_H_
#define SATRAP_NN_WORKER_BACKEND_DEVICE_HOST_DEVICE_BACKEND_H_

#include <memory>

#include "nn_worker/backend/backend.h"
#include "nn_worker/device/host/host_device.h"

namespace satrap {

std::unique_ptr<Backend> NewHostDeviceBackend(const HostDeviceOptions& options);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_BACKEND_DEVICE_HOST_DEVICE_BACKEND_H_
