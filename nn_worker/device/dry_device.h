// A Device without memory. Its allocations are addresses without memory, launches and copies do
// nothing, and every event has happened. It shows how much device memory a program would use,
// without needing a device.
//
// Pinned memory is real, because the host writes to it. Copies from the device give zeros.
//
// Thread-safe.

#ifndef SATRAP_NN_WORKER_DEVICE_DRY_DEVICE_H_
#define SATRAP_NN_WORKER_DEVICE_DRY_DEVICE_H_

#include <memory>

#include "nn_worker/device/device.h"

namespace satrap {

std::unique_ptr<Device> NewDryDevice();

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_DEVICE_DRY_DEVICE_H_
