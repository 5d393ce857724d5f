// A Device without memory: allocations have addresses with no memory behind them, launches and
// copies do nothing, and every event has happened. It shows how much of a device a program would
// use, without needing a device.
//
// Pinned memory is real, because the host writes to it. A copy out gives zeros.
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
