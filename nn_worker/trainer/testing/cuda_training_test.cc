// The training of device_training.h on a card, with cuBLASLt's plans and with our own kernel alone.
// Without a card the tests are skipped and say what is missing.

#include "gtest/gtest.h"
#include "nn_worker/backend/testing/cuda_test_backend.h"
#include "nn_worker/trainer/testing/device_training.h"

namespace satrap {
namespace {

INSTANTIATE_TEST_SUITE_P(CublasLt, DeviceTraining,
                         testing::Values<DeviceFactory>(NewCudaTestBackend));
INSTANTIATE_TEST_SUITE_P(Kernels, DeviceTraining,
                         testing::Values<DeviceFactory>(NewCudaKernelTestBackend));

}  // namespace
}  // namespace satrap
