// A Device without memory: allocations have addresses that nothing lies at, launches and copies do
// nothing, and every event has happened. It shows what a program would take of a device, without
// one.
//
// Pinned memory is there, because the host writes to it. A copy out gives zeros.
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
