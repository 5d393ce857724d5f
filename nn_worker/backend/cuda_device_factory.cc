// NewJobDevice of a program with the kernels of nvcc.

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "nn_worker/backend/device_factory.h"
#include "nn_worker/device/cuda/cuda_device.h"
#include "nn_worker/device/kernel_products.h"

namespace satrap {

absl::StatusOr<JobDevice> NewJobDevice(const NnWorkerConfig& config, int card) {
  if (config.device() != NnWorkerConfig::CUDA) {
    return absl::FailedPreconditionError(
        absl::StrCat("nn_worker.device is ", NnWorkerConfig::Device_Name(config.device()),
                     ", and this program is for CUDA: run nn_worker in place of nn_worker_cuda"));
  }
  ASSIGN_OR_RETURN(std::unique_ptr<Device> device, NewCudaDevice(card));
  return JobDevice{std::move(device), NewKernelProducts()};
}

}  // namespace satrap
