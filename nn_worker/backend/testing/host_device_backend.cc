#include "nn_worker/backend/testing/host_device_backend.h"

#include <utility>

#include "common/base/check.h"
#include "nn_worker/backend/device/device_backend.h"
#include "nn_worker/products/kernel_products.h"

namespace satrap {

std::unique_ptr<Backend> NewHostDeviceBackend(const HostDeviceOptions& options) {
  auto backend = NewDeviceBackend(NewHostDevice(options), NewKernelProducts());
  // The host's device refuses neither streams nor events.
  CHECK_OK(backend.status());
  return *std::move(backend);
}

}  // namespace satrap
