// Implements NewCudaDevice for builds without a CUDA toolkit.

#include "common/base/check.h"
#include "nn_worker/device/cuda/cuda_device.h"

namespace satrap {

absl::StatusOr<std::unique_ptr<Device>> NewCudaDevice(int /*card*/) {
  return absl::UnimplementedError(
      "cannot train on a GPU: this program was built without CUDA; run ./setup cuda, and build it "
      "again");
}

void* CudaStreamOf(DeviceStream* /*stream*/) {
  CHECK(false) << "without CUDA there is no such stream";
  return nullptr;
}

void KeepErrorOfCard(DeviceStream* /*stream*/, const absl::Status& error) {
  CHECK(false) << "without CUDA there is no such stream: " << error;
}

}  // namespace satrap
