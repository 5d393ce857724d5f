#include <initializer_list>

#include "gtest/gtest.h"
#include "nn_worker/device/cuda/cublaslt_plan.h"
#include "nn_worker/device/cuda/cuda_device.h"

namespace satrap {
namespace {

TEST(NoCudaDeviceTest, ABuildWithoutCudaSaysHowToGetIt) {
  for (const absl::Status& status : {NewCudaDevice(0).status(), NewCublasLtPlanner(0).status()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
    EXPECT_EQ(status.message(),
              "cannot train on a GPU: this program was built without CUDA; run ./setup cuda, and "
              "build it again");
  }
}

}  // namespace
}  // namespace satrap
