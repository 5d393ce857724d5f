// The backend of a device: every operation enqueues kernels (nn_worker/device/kernels) on the one
// stream of the backend. The device may be a card or HostDevice, and both share all of it.
//
// Tensors are F32, apart from those that backend.h says are F64 or integers. The host reaches the
// memory by copies alone: HostView and DeviceView return null.
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
