// The backend of a device: every operation enqueues kernels (nn_worker/device/kernels) on the one
// stream of the backend. The device may be a card or HostDevice, and both share all of it.
//
// F16 and BF16 may stand for F32 wherever CpuHalfBackend takes them (cpu_half_backend.h): kernels load
// them as f32, compute in f32 and round what they store, once. The host reaches the memory by copies
// alone: HostView and DeviceView return null.
//
// Thread-compatible, as every Backend.

#ifndef SATRAP_NN_WORKER_BACKEND_DEVICE_BACKEND_H_
#define SATRAP_NN_WORKER_BACKEND_DEVICE_BACKEND_H_

#include <memory>

#include "absl/status/statusor.h"
#include "nn_worker/backend/backend.h"
#include "nn_worker/device/device.h"
#include "nn_worker/device/products.h"

namespace satrap {

// INTERNAL if the device refuses a stream or an event.
absl::StatusOr<std::unique_ptr<Backend>> NewDeviceBackend(std::unique_ptr<Device> device,
                                                          std::unique_ptr<Products> products);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_BACKEND_DEVICE_BACKEND_H_
