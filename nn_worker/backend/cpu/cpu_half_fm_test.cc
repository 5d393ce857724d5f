#include "nn_worker/backend/cpu/cpu_half_fm.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "common/numeric/half.h"
#include "common/numeric/random.h"
#include "gtest/gtest.h"
#include "nn_worker/backend/cpu/cpu_backend.h"
#include "nn_worker/backend/cpu/cpu_half_backend.h"
#include "nn_worker/backend/tensor_copy.h"

namespace satrap {
namespace {

constexpr int64_t kRows = 150, kFields = 5;

// An Fm and its gradient, computed in `dtype`: s, y and the gradients of the fields, which are
// columns of one tensor. The values are the same BF16 numbers in each dtype.
struct Results {
  std::vector<float> s, y, dx;
};

class HalfFmTest : public testing::Test {
 protected:
  Tensor New(Backend* backend, DType dtype, int64_t rows, int64_t cols, uint64_t salt) {
    std::vector<uint16_t> halves;
    std::vector<float> values;
    for (int64_t i = 0; i < rows * cols; ++i) {
      const auto value = static_cast<float>(UniformDouble(RandomBits(salt, i)) - 0.5);
      halves.push_back(Bf16FromF32(i == 7 ? std::numeric_limits<float>::quiet_NaN() : value));
      values.push_back(F32FromBf16(halves.back()));
    }
    const Tensor tensor = AllocateTensor(backend, dtype, rows, cols).value();
    if (dtype == DType::kBF16) {
      CopyIn(backend, halves, tensor);
    } else {
      CopyIn(backend, values, tensor);
    }
    return tensor;
  }
  // The values as they are rounded to BF16.
  std::vector<float> Rounded(Backend* backend, const Tensor& tensor) {
    std::vector<float> values;
    if (tensor.dtype == DType::kBF16) {
      std::vector<uint16_t> halves(tensor.size());
      CopyOut(backend, tensor, absl::MakeSpan(halves));
      for (const uint16_t half : halves) values.push_back(F32FromBf16(half));
      return values;
    }
    values = ReadFloats(backend, tensor);
    for (float& value : values) value = F32FromBf16(Bf16FromF32(value));
    return values;
  }

  Results Compute(Backend* backend, DType dtype, int64_t dim, bool add, bool shared) {
    const Tensor x = New(backend, dtype, kRows, kFields * dim, 1);
    const Tensor dx = New(backend, dtype, kRows, kFields * dim, 2);
    std::vector<Tensor> xs;
    std::vector<GradientTarget> dxs;
    for (int64_t f = 0; f < kFields; ++f) {
      xs.push_back(x.Columns(f * dim, dim));
      dxs.push_back({dx.Columns(shared ? 0 : f * dim, dim), add});
    }
    if (!shared) dxs[2] = {};
    const Tensor s = New(backend, DType::kF32, kRows, dim, 3);
    const Tensor y = New(backend, dtype, kRows, 1, 4);
    backend->Fm(xs, s, y);
    backend->FmGrad(xs, s, New(backend, dtype, kRows, 1, 5), dxs);
    return {Rounded(backend, s), Rounded(backend, y), Rounded(backend, dx)};
  }
};

void ExpectTheSame(const std::vector<float>& got, const std::vector<float>& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(got[i]) && std::isnan(wanted[i])) continue;
    EXPECT_EQ(got[i], wanted[i]) << i;
  }
}

TEST_F(HalfFmTest, ResultsAreThoseOfF32RoundedOnce) {
  for (const int64_t dim : {1, 15, 16, 40}) {
    for (const bool add : {false, true}) {
      SCOPED_TRACE(testing::Message() << "dim " << dim << ", add " << add);
      const auto half = NewCpuHalfBackend(2);
      const auto wide = NewCpuBackend(2);
      const Results got = Compute(half.get(), DType::kBF16, dim, add, /*shared=*/false);
      const Results wanted = Compute(wide.get(), DType::kF32, dim, add, /*shared=*/false);
      ExpectTheSame(got.s, wanted.s);
      ExpectTheSame(got.y, wanted.y);
      ExpectTheSame(got.dx, wanted.dx);
    }
  }
}

TEST_F(HalfFmTest, AGradientThatAllInputsShareIsRoundedOnce) {
  const auto half = NewCpuHalfBackend(2);
  const auto wide = NewCpuBackend(2);
  const Results got = Compute(half.get(), DType::kBF16, 16, /*add=*/true, /*shared=*/true);
  const Results wanted = Compute(wide.get(), DType::kF32, 16, /*add=*/true, /*shared=*/true);
  ExpectTheSame(got.dx, wanted.dx);
}

}  // namespace
}  // namespace satrap
