// Implements device_factory.h for programs whose kernels are compiled by nvcc.

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "nn_worker/backend/device/device_factory.h"
#include "nn_worker/device/cuda/cublaslt_plan.h"
#include "nn_worker/device/cuda/cuda_device.h"
#include "nn_worker/products/library_products.h"

namespace satrap {

bool ProgramHasCards() { return true; }

absl::StatusOr<JobDevice> NewJobDevice(const NnWorkerConfig& config, int card) {
  if (config.device() != NnWorkerConfig::CUDA) {
    return absl::FailedPreconditionError(absl::StrCat(
        "nn_worker.device is ", NnWorkerConfig::Device_Name(config.device()),
        ", but this program is for CUDA: run nn_worker_host in place of nn_worker_cuda"));
  }
  ASSIGN_OR_RETURN(std::unique_ptr<Device> device, NewCudaDevice(card));
  // The library is required: a rank without it would be many times slower than the others, and they
  // would wait for it.
  ASSIGN_OR_RETURN(std::unique_ptr<ProductPlanner> planner, NewCublasLtPlanner(card));
  const F32Factors f32_factors =
      config.precision() == NnWorkerConfig::TF32 ? F32Factors::kTf32 : F32Factors::kExact;
  return JobDevice{std::move(device), NewLibraryProducts(std::move(planner), f32_factors)};
}

absl::Status CheckDeviceReduction() { return CheckNccl(); }

absl::StatusOr<std::unique_ptr<DeviceReduction>> NewDeviceReduction(
    const NcclOptions& options, RendezvousStore* store, absl::FunctionRef<bool()> aborted) {
  return NewNcclReduction(options, store, aborted);
}

}  // namespace satrap
