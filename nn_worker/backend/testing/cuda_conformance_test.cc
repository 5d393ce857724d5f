// Runs the suites on DeviceBackend on a card, with the plans of cuBLASLt and with our own kernel
// only. Without a card all tests are skipped and say what is missing.

#include "gtest/gtest.h"
#include "nn_worker/backend/testing/backend_conformance.h"
#include "nn_worker/backend/testing/cuda_test_backend.h"
#include "nn_worker/backend/testing/half_conformance.h"

namespace satrap {
namespace {

INSTANTIATE_TEST_SUITE_P(CublasLt, BackendConformance,
                         testing::Values<BackendFactory>(NewCudaTestBackend));
INSTANTIATE_TEST_SUITE_P(CublasLt, LinearConformance,
                         testing::Values<BackendFactory>(NewCudaTestBackend));
INSTANTIATE_TEST_SUITE_P(CublasLt, InteractionConformance,
                         testing::Values<BackendFactory>(NewCudaTestBackend));
INSTANTIATE_TEST_SUITE_P(CublasLt, LossConformance,
                         testing::Values<BackendFactory>(NewCudaTestBackend));
INSTANTIATE_TEST_SUITE_P(CublasLt, HalfConformance,
                         testing::Values<BackendFactory>(NewCudaTestBackend));
INSTANTIATE_TEST_SUITE_P(CublasLt, HalfLinearConformance,
                         testing::Values<BackendFactory>(NewCudaTestBackend));
INSTANTIATE_TEST_SUITE_P(Kernels, LinearConformance,
                         testing::Values<BackendFactory>(NewCudaKernelTestBackend));
INSTANTIATE_TEST_SUITE_P(Kernels, HalfLinearConformance,
                         testing::Values<BackendFactory>(NewCudaKernelTestBackend));

}  // namespace
}  // namespace satrap
