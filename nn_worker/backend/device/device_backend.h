// The backend of a device: every operation enqueues kernels (nn_worker/device/kernels) on the one
// stream of the backend. The device may be a card or HostDevice; all code of this backend is the
// same for both.
//
// F16 and BF16 may replace F32 wherever CpuHalfBackend takes them (cpu_half_backend.h): kernels
// load them as f32, compute in f32, and round each result once, when they store it. The host
// accesses the memory only by copies: HostView and DeviceView return null.
//
// Thread-compatible, as every Backend.

#ifndef SATRAP_NN_WORKER_BACKEND_DEVICE_DEVICE_BACKEND_H_
#define SATRAP_NN_WORKER_BACKEND_DEVICE_DEVICE_BACKEND_H_

#include <memory>

#include "absl/status/statusor.h"
#include "nn_worker/backend/backend.h"
#include "nn_worker/device/device.h"
#include "nn_worker/device/metered_device.h"
#include "nn_worker/products/products.h"

namespace satrap {

struct DeviceBackendOptions {
  // Counts allocations and copies, and limits device memory; may be null.
  std::shared_ptr<DeviceMeter> meter;
  // Memory for operations that is allocated at the start: scratch memory, and memory for the lists
  // of the network and of parts (ListKind). If an operation needs more, it is allocated when the
  // operation is enqueued, and a failure then ends the process.
  int64_t scratch_bytes = 0;
  int64_t list_bytes = 0;
  int64_t part_list_bytes = 0;
};

// Makes a backend. `products` come from NewKernelProducts, or from NewLibraryProducts with a
// planner whose plans are for streams of the same device. INTERNAL if the device refuses a stream
// or an event; RESOURCE_EXHAUSTED if the memory of the options cannot be allocated.
absl::StatusOr<std::unique_ptr<Backend>> NewDeviceBackend(std::unique_ptr<Device> device,
                                                          std::unique_ptr<Products> products,
                                                          const DeviceBackendOptions& options = {});

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_BACKEND_DEVICE_DEVICE_BACKEND_H_
