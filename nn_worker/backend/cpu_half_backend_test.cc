#include "nn_worker/backend/cpu_half_backend.h"

#include <cstdint>
#include <vector>

#include "common/numeric/half.h"
#include "common/numeric/random.h"
#include "gtest/gtest.h"
#include "nn_worker/backend/backend_conformance.h"
#include "nn_worker/backend/cpu_bf16_matrix.h"
#include "nn_worker/backend/half_conformance.h"
#include "nn_worker/backend/tensor_copy.h"

namespace satrap {
namespace {

INSTANTIATE_TEST_SUITE_P(CpuHalf, BackendConformance,
                         testing::Values<BackendFactory>([] { return NewCpuHalfBackend(2); }));
INSTANTIATE_TEST_SUITE_P(CpuHalf, LinearConformance,
                         testing::Values<BackendFactory>([] { return NewCpuHalfBackend(2); }));
INSTANTIATE_TEST_SUITE_P(CpuHalf, InteractionConformance,
                         testing::Values<BackendFactory>([] { return NewCpuHalfBackend(2); }));
INSTANTIATE_TEST_SUITE_P(CpuHalf, LossConformance,
                         testing::Values<BackendFactory>([] { return NewCpuHalfBackend(2); }));
INSTANTIATE_TEST_SUITE_P(
    CpuHalf, HalfConformance,
    testing::Values<BackendFactory>([] { return NewCpuHalfBackend(1, HalfProducts::kF32); },
                                    [] { return NewCpuHalfBackend(3, HalfProducts::kF32); }));

INSTANTIATE_TEST_SUITE_P(
    CpuHalf, HalfLinearConformance,
    testing::Values<BackendFactory>([] { return NewCpuHalfBackend(1, HalfProducts::kF32); },
                                    [] { return NewCpuHalfBackend(3, HalfProducts::kF32); }));

// Where the CPU has these products; at their best or not.
std::vector<BackendFactory> WithBf16Products() {
  if (!CpuBf16Matrix::IsSupported()) return {};
  return {[] { return NewCpuHalfBackend(1, HalfProducts::kBf16); },
          [] { return NewCpuHalfBackend(3, HalfProducts::kBf16); }};
}
INSTANTIATE_TEST_SUITE_P(CpuBf16, HalfConformance, testing::ValuesIn(WithBf16Products()));
INSTANTIATE_TEST_SUITE_P(CpuBf16, HalfLinearConformance, testing::ValuesIn(WithBf16Products()));

TEST(CpuHalfBackendTest, Bf16ProductsHaveTheSameBitsForAnyNumberOfThreadsAndRows) {
  if (!CpuBf16Matrix::IsSupported()) GTEST_SKIP() << "this CPU has no products of BF16";
  constexpr int64_t kRows = 600, kIn = 200, kOut = 72;
  std::vector<std::vector<float>> results;
  for (const int threads : {1, 3}) {
    const auto backend = NewCpuHalfBackend(threads, HalfProducts::kBf16);
    const auto random = [&](int64_t rows, int64_t cols, uint64_t salt) {
      std::vector<uint16_t> bits;
      for (int64_t i = 0; i < rows * cols; ++i) {
        bits.push_back(Bf16FromF32(static_cast<float>(UniformDouble(RandomBits(salt, i)) - 0.5)));
      }
      const Tensor tensor = AllocateTensor(backend.get(), DType::kBF16, rows, cols).value();
      CopyIn(backend.get(), bits, tensor);
      return tensor;
    };
    const auto zeros = [&](int64_t rows, int64_t cols) {
      return AllocateTensor(backend.get(), DType::kF32, rows, cols).value();
    };
    const Tensor x = random(kRows, kIn, 1), w = random(kIn, kOut, 2), dy = random(kRows, kOut, 3);
    const Tensor y = zeros(kRows, kOut), parts = zeros(kRows, kOut), dx = zeros(kRows, kIn);
    const Tensor dw = zeros(kIn, kOut), db = zeros(1, kOut);
    backend->Linear(x, w, Tensor(), Activation::kLinear, y);
    for (int64_t begin = 0; begin < kRows; begin += 100) {
      backend->Linear(x.Rows(begin, 100), w, Tensor(), Activation::kLinear, parts.Rows(begin, 100));
    }
    backend->LinearGrad({x, w, Activation::kLinear, y, dy, {dx, false}, dw, db});
    EXPECT_EQ(ReadFloats(backend.get(), y), ReadFloats(backend.get(), parts));
    results.emplace_back();
    for (const Tensor& tensor : {y, dx, dw, db}) {
      const std::vector<float> values = ReadFloats(backend.get(), tensor);
      results.back().insert(results.back().end(), values.begin(), values.end());
    }
  }
  EXPECT_EQ(results[0], results[1]);
}

// A product in whichever unit: 1 + 2^-9 is no BF16, so a sum of 64 of them shows whether operands
// were rounded before they were multiplied, and whether the sum was rounded on its way.
TEST(CpuHalfBackendTest, MultipliesRoundedValuesAndSumsThemInF32) {
  const auto backend = NewCpuHalfBackend(1, HalfProducts::kF32);
  const auto tensor = [&](DType dtype, int64_t rows, int64_t cols, float value) {
    const Tensor wide = AllocateTensor(backend.get(), DType::kF32, rows, cols).value();
    backend->Fill(wide, value);
    const Tensor half = AllocateTensor(backend.get(), dtype, rows, cols).value();
    backend->Copy(wide, half, /*add=*/false);
    return half;
  };
  const Tensor y = AllocateTensor(backend.get(), DType::kF32, 1, 2).value();
  backend->Linear(tensor(DType::kBF16, 1, 64, 1 + 0x1p-9f),
                  tensor(DType::kBF16, 64, 2, 1 + 0x1p-7f), Tensor(), Activation::kLinear, y);
  EXPECT_EQ(ReadFloats(backend.get(), y), (std::vector<float>(2, 64 + 0.5f)));
  backend->Linear(tensor(DType::kF16, 1, 64, 1 + 0x1p-9f), tensor(DType::kF16, 64, 2, 1 + 0x1p-7f),
                  Tensor(), Activation::kLinear, y);
  EXPECT_EQ(ReadFloats(backend.get(), y),
            (std::vector<float>(2, 64 * (1 + 0x1p-9f) * (1 + 0x1p-7f))));
}

}  // namespace
}  // namespace satrap
