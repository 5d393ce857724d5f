// Tests what a backend with 16-bit values must do in addition to backend_conformance.h:
//
//   INSTANTIATE_TEST_SUITE_P(CpuHalf, HalfConformance,
//                            testing::Values([] { return NewCpuHalfBackend(2); }));
//
// The tests of an operation in 16 bits are next to those in F32 (backend_conformance_*.cc). Each
// operation gets random values that F16 or BF16 holds exactly. ReferenceBackend gets the same
// values as F32 and sums in double. A 16-bit result may differ from the reference's by half a unit
// in the last place (2^-11 of an F16, 2^-8 of a BF16) plus the tolerance of backend_conformance.h
// for f32.

#ifndef SATRAP_NN_WORKER_BACKEND_TESTING_HALF_CONFORMANCE_H_
#define SATRAP_NN_WORKER_BACKEND_TESTING_HALF_CONFORMANCE_H_

#include <cstdint>
#include <vector>

#include "nn_worker/backend/testing/backend_conformance.h"

namespace satrap {

class HalfConformance : public BackendConformance {
 protected:
  // Two tensors with the same values: `half`, of a 16-bit dtype, in the backend under test, and
  // `want` in the reference backend.
  struct Twin {
    Tensor half, want;
    GradientTarget HalfTarget(bool add) const { return {half, add}; }
    GradientTarget WantTarget(bool add) const { return {want, add}; }
  };

  static constexpr DType kHalves[] = {DType::kF16, DType::kBF16};

  static std::vector<uint16_t> BitsOf(DType dtype, const std::vector<float>& values);
  // Random values in [-1, 1) that `dtype` holds exactly. Equal salts give equal values.
  Twin RandomTwin(DType dtype, int64_t rows, int64_t cols, int salt, int64_t stride = 0);
  // A Twin whose reference tensor is a copy of `half`.
  Twin TwinOf(Tensor half);
  std::vector<float> HalfValues(Tensor x);
  void ExpectTwins(const Twin& twin);
  static std::vector<Tensor> Halves(const std::vector<Twin>& twins);
  static std::vector<Tensor> Wants(const std::vector<Twin>& twins);
};

// Like HalfConformance, for prepared linear layers. It is a separate suite so that the tests of a
// slow backend can be divided.
class HalfLinearConformance : public HalfConformance {};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_BACKEND_TESTING_HALF_CONFORMANCE_H_
