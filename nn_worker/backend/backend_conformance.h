// What every Backend must do: a suite of tests over a factory, which each backend's own test
// instantiates:
//
//   INSTANTIATE_TEST_SUITE_P(Cpu, BackendConformance,
//                            testing::Values([] { return NewCpuBackend(2); }));
//
// Random values are compared with ReferenceBackend's results, small cases with numbers worked out
// by hand. The backend's memory must be host memory: the tests write to it directly.

#ifndef SATRAP_NN_WORKER_BACKEND_BACKEND_CONFORMANCE_H_
#define SATRAP_NN_WORKER_BACKEND_BACKEND_CONFORMANCE_H_

#include <functional>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "nn_worker/backend/backend.h"

namespace satrap {

using BackendFactory = std::function<std::unique_ptr<Backend>()>;

class BackendConformance : public testing::TestWithParam<BackendFactory> {
 protected:
  BackendConformance();

  // Memory of the backend under test. A `stride` of 0 stands for `cols`.
  Tensor New(int64_t rows, int64_t cols, int64_t stride = 0);
  Tensor NewF64(int64_t rows, int64_t cols);
  // Values in [-1, 1), the same for the same salt.
  Tensor Random(int64_t rows, int64_t cols, int salt, int64_t stride = 0);
  Tensor Of(const std::vector<std::vector<float>>& rows);
  // A copy of `x`, for an operation that overwrites or adds.
  Tensor CopyOf(Tensor x);
  std::vector<float> Values(Tensor x);

  void ExpectNear(Tensor got, Tensor want, double tolerance);

  const std::unique_ptr<Backend> backend_;
  const std::unique_ptr<Backend> reference_;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_BACKEND_BACKEND_CONFORMANCE_H_
