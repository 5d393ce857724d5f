// Checks whether a device has room for the memory that a rank will need, before the rank allocates
// any.
//
// Thread-safe: the function depends only on its arguments.

#ifndef SATRAP_NN_WORKER_BACKEND_DEVICE_DEVICE_ROOM_H_
#define SATRAP_NN_WORKER_BACKEND_DEVICE_DEVICE_ROOM_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "nn_worker/device/device.h"

namespace satrap {

// Device memory of a rank, as planned (nn_worker/trainer/memory_plan/device_plan.h).
struct DeviceNeed {
  int64_t bytes = 0;
  std::string text;  // `bytes` in words, for messages
  // The part of `bytes` that a backend allocates at its start (DeviceBackendOptions).
  int64_t scratch_bytes = 0;
  int64_t list_bytes = 0;
  int64_t part_list_bytes = 0;
};

// Errors state the need, what the device has, and what to do. FAILED_PRECONDITION, which ends the
// run for good, if the device is too small even when nobody else uses it; RESOURCE_EXHAUSTED if too
// little of it is free.
absl::Status CheckDeviceRoom(const DeviceNeed& need, const DeviceRoom& room);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_BACKEND_DEVICE_DEVICE_ROOM_H_
