// Tests what every Backend must do. The suite takes a factory, and each backend's own test
// instantiates it:
//
//   INSTANTIATE_TEST_SUITE_P(Cpu, BackendConformance,
//                            testing::Values([] { return NewCpuBackend(2); }));
//
// Results for random values are compared with those of ReferenceBackend, and small cases with
// numbers computed by hand. The host need not be able to access the backend's memory. If the
// factory returns an error, for example without a card, the tests are skipped with its message.

#ifndef SATRAP_NN_WORKER_BACKEND_TESTING_BACKEND_CONFORMANCE_H_
#define SATRAP_NN_WORKER_BACKEND_TESTING_BACKEND_CONFORMANCE_H_

#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "nn_worker/backend/backend.h"

namespace satrap {

using BackendFactory = std::function<absl::StatusOr<std::unique_ptr<Backend>>()>;

// The ids of a feature. Without offsets there is one id per sample.
struct HostIds {
  std::vector<uint32_t> rows, offsets;
  std::vector<float> weights;
};

class BackendConformance : public testing::TestWithParam<BackendFactory> {
 protected:
  BackendConformance();
  void SetUp() override {
    if (backend_ == nullptr) GTEST_SKIP() << made_.status().message();
  }
  // Checks that nothing was written between the rows of tensors from New().
  void TearDown() override;

  // Memory of the backend under test. A `stride` of 0 means `cols`.
  Tensor New(int64_t rows, int64_t cols, int64_t stride = 0, DType dtype = DType::kF32);
  // Random values in [-1, 1). Equal salts give equal values.
  Tensor Random(int64_t rows, int64_t cols, int salt, int64_t stride = 0);
  Tensor Of(const std::vector<std::vector<float>>& rows);
  std::vector<float> Values(Tensor x);
  std::vector<double> Doubles(Tensor x);

  // Tensors in the reference backend's memory: NewReference() makes zeros, Reference() a copy of
  // the current values of `x` of the backend under test. `x` may be empty.
  Tensor NewReference(int64_t rows, int64_t cols, DType dtype = DType::kF32);
  Tensor Reference(Tensor x);
  LinearGradArgs Reference(const LinearGradArgs& args);
  std::vector<Tensor> References(const std::vector<Tensor>& xs);

  // The control of a step with one sample of weight 1 and learning rate 1, on either backend. All
  // other settings are the defaults.
  static Tensor ControlThatApplies(Backend* backend);

  // The next functions serve the exchange of rows (backend_conformance_rows.cc).
  Tensor Uints(const std::vector<uint32_t>& values);
  // A feature without segments.
  FeatureExchange Feature(RowPooling pooling, int64_t samples, const HostIds& ids, Tensor rows);
  RowInverse Inverse(const std::vector<HostIds>& ids_of_features, size_t num_rows);
  FeatureExchange Reference(FeatureExchange feature);

  // Compares `got` with `want`, a tensor of the reference backend.
  void ExpectNear(Tensor got, Tensor want, double tolerance);

  // Allocates the tensors of a layer, for LinearConformance (backend_conformance_linear.cc).
  LinearSpec NewLinear(int64_t n, int64_t in, int64_t out, Activation activation);

 private:
  absl::StatusOr<std::unique_ptr<Backend>> made_;

 protected:
  const std::unique_ptr<Backend> backend_;
  const std::unique_ptr<Backend> reference_;

 private:
  std::vector<Tensor> gaps_;
};

// Suites like BackendConformance: for prepared layers (linear_operations.h), for
// interaction_operations.h and for loss_operations.h. They are separate so that the tests of a slow
// backend can be divided.
class LinearConformance : public BackendConformance {};
class InteractionConformance : public BackendConformance {};
class LossConformance : public BackendConformance {};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_BACKEND_TESTING_BACKEND_CONFORMANCE_H_
