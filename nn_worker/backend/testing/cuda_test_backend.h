// DeviceBackend on the first card with the plans of cuBLASLt, for tests that are skipped without a
// card.

#ifndef SATRAP_NN_WORKER_BACKEND_TESTING_CUDA_TEST_BACKEND_H_
#define SATRAP_NN_WORKER_BACKEND_TESTING_CUDA_TEST_BACKEND_H_

#include <memory>

#include "absl/status/statusor.h"
#include "nn_worker/backend/backend.h"

namespace satrap {

// Errors are those of NewCudaDevice or of NewCublasLtPlanner, which say what is missing.
absl::StatusOr<std::unique_ptr<Backend>> NewCudaTestBackend();
// As NewCudaTestBackend, but with the products of our own kernel.
absl::StatusOr<std::unique_ptr<Backend>> NewCudaKernelTestBackend();

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_BACKEND_TESTING_CUDA_TEST_BACKEND_H_
