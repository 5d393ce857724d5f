// DeviceBackend on HostDevice, with the products of our own kernel. It runs all kernels of a card
// on the CPU, slowly, but none of the card's libraries.

#ifndef SATRAP_NN_WORKER_BACKEND_TESTING_HOST_DEVICE_BACKEND_H_
#define SATRAP_NN_WORKER_BACKEND_TESTING_HOST_DEVICE_BACKEND_H_

#include <memory>

#include "nn_worker/backend/backend.h"
#include "nn_worker/device/host/host_device.h"

namespace satrap {

std::unique_ptr<Backend> NewHostDeviceBackend(const HostDeviceOptions& options);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_BACKEND_TESTING_HOST_DEVICE_BACKEND_H_
