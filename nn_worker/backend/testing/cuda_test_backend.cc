#include "nn_worker/backend/testing/cuda_test_backend.h"

#include <utility>

#include "common/base/status_macros.h"
#include "nn_worker/backend/device/device_backend.h"
#include "nn_worker/device/cuda/cublaslt_plan.h"
#include "nn_worker/device/cuda/cuda_device.h"
#include "nn_worker/products/kernel_products.h"
#include "nn_worker/products/library_products.h"

namespace satrap {

absl::StatusOr<std::unique_ptr<Backend>> NewCudaTestBackend() {
  ASSIGN_OR_RETURN(std::unique_ptr<Device> device, NewCudaDevice(0));
  ASSIGN_OR_RETURN(std::unique_ptr<ProductPlanner> planner, NewCublasLtPlanner(0));
  return NewDeviceBackend(std::move(device), NewLibraryProducts(std::move(planner)));
}

absl::StatusOr<std::unique_ptr<Backend>> NewCudaKernelTestBackend() {
  ASSIGN_OR_RETURN(std::unique_ptr<Device> device, NewCudaDevice(0));
  return NewDeviceBackend(std::move(device), NewKernelProducts());
}

}  // namespace satrap
