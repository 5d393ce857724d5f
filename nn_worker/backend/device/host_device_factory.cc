// Implements device_factory.h for programs whose kernels are compiled by the host's compiler.

#include "common/base/check.h"
#include "nn_worker/backend/device/device_factory.h"
#include "nn_worker/device/host/host_device.h"
#include "nn_worker/products/kernel_products.h"

namespace satrap {
namespace {

// A limit on device memory that is within the device's range of addresses. The job's own limit is
// enforced by the meter.
constexpr int64_t kMemoryBytes = int64_t{1} << 36;

}  // namespace

bool ProgramHasCards() { return false; }

absl::StatusOr<JobDevice> NewJobDevice(const NnWorkerConfig& config, int /*card*/) {
  if (config.device() == NnWorkerConfig::CUDA) {
    return absl::FailedPreconditionError(
        "nn_worker.device is CUDA, but this program is for CPU and HOST: run nn_worker_cuda in "
        "place of nn_worker_host; ./satrap builds it after ./setup cuda");
  }
  CHECK(config.device() == NnWorkerConfig::HOST) << NnWorkerConfig::Device_Name(config.device());
  HostDeviceOptions options;
  // No kernel adds with atomics, so the number of threads changes no bits.
  options.threads = config.compute_threads();
  options.memory_bytes = kMemoryBytes;
  return JobDevice{NewHostDevice(options), NewKernelProducts()};
}

absl::Status CheckDeviceReduction() {
  return absl::UnimplementedError(
      "NCCL works on GPUs only, but this program is for CPU and HOST: run nn_worker_cuda");
}

absl::StatusOr<std::unique_ptr<DeviceReduction>> NewDeviceReduction(
    const NcclOptions& /*options*/, RendezvousStore* /*store*/,
    absl::FunctionRef<bool()> /*aborted*/) {
  return CheckDeviceReduction();
}

}  // namespace satrap
