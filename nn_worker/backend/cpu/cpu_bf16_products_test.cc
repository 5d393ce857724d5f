// Runs the same tests for each way to multiply BF16 matrices.

#include "nn_worker/backend/cpu/cpu_bf16_products.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include "common/numeric/half.h"
#include "common/numeric/random.h"
#include "common/thread/fork_join_pool.h"
#include "gtest/gtest.h"
#include "nn_worker/backend/cpu/cpu_amx_bf16.h"
#include "nn_worker/backend/cpu/cpu_avx512_bf16.h"

namespace satrap {
namespace {

constexpr uint16_t kNan = 0x7fc0;

// Random values in [-1, 1). The gaps between rows hold NaN, because no product may read them.
class Matrix {
 public:
  Matrix(int64_t rows, int64_t cols, int salt, int64_t gap = 3)
      : stride_(cols + gap), rows_(rows), cols_(cols), bits_(rows * stride_ + 1, kNan) {
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t c = 0; c < cols; ++c) {
        Set(i, c, static_cast<float>(2 * UniformDouble(RandomBits(salt, i, c)) - 1));
      }
    }
  }
  void Set(int64_t i, int64_t c, float value) { bits_[i * stride_ + c] = Bf16FromF32(value); }
  double At(int64_t i, int64_t c) const { return F32FromBf16(bits_[i * stride_ + c]); }
  bool GapsAreUntouched() const {
    for (int64_t i = 0; i < rows_; ++i) {
      for (int64_t c = cols_; c < stride_; ++c) {
        if (bits_[i * stride_ + c] != kNan) return false;
      }
    }
    return bits_.back() == kNan;
  }
  Tensor tensor() { return {DType::kBF16, bits_.data(), rows_, cols_, stride_}; }
  const std::vector<uint16_t>& bits() const { return bits_; }

 private:
  int64_t stride_, rows_, cols_;
  std::vector<uint16_t> bits_;
};

struct Shape {
  int64_t n, in, out;
};
// Sizes just below and just above those of a tile, a panel, a block of rows, a slice and a sum of
// samples.
constexpr Shape kShapes[] = {{1, 1, 1},     {3, 2, 16},      {6, 5, 17},    {37, 13, 48},
                             {36, 64, 49},  {145, 7, 65},    {144, 33, 80}, {300, 45, 128},
                             {257, 40, 96}, {1025, 109, 31}, {0, 5, 4},     {5, 0, 3},
                             {64, 96, 33},  {31, 31, 32},    {513, 17, 15}, {4500, 35, 18}};

struct Way {
  const char* name;
  bool (*is_supported)();
  std::unique_ptr<CpuBf16Products> (*make)(ForkJoinPool*);
  int64_t sum_samples;
};
template <typename Products>
constexpr Way WayOf(const char* name) {
  return {name, Products::IsSupported,
          [](ForkJoinPool* pool) -> std::unique_ptr<CpuBf16Products> {
            return std::make_unique<Products>(pool);
          },
          Products::kSumSamples};
}

void Nothing(int64_t, int64_t) {}

class CpuBf16ProductsTest : public testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    if (!GetParam().is_supported()) GTEST_SKIP() << "this CPU cannot multiply BF16 so";
  }
  static std::unique_ptr<CpuBf16Products> Make(ForkJoinPool* pool) { return GetParam().make(pool); }
};

INSTANTIATE_TEST_SUITE_P(Ways, CpuBf16ProductsTest,
                         testing::Values(WayOf<CpuAmxBf16>("Amx"), WayOf<CpuAvx512Bf16>("Avx512")),
                         [](const auto& info) { return info.param.name; });

TEST_P(CpuBf16ProductsTest, ProductsAreThoseOfPlainLoops) {
  ForkJoinPool pool(2);
  const auto products = Make(&pool);
  for (const auto& [n, in, out] : kShapes) {
    SCOPED_TRACE(testing::Message() << n << " x " << in << " x " << out);
    Matrix x(n, in, 1), w(in, out, 2), y(n, out, 3);
    std::vector<float> bias(out);
    for (int64_t c = 0; c < out; ++c) bias[c] = static_cast<float>(c % 5) - 2;
    products->Product(x.tensor(), w.tensor(), TensorF32(bias.data(), 1, out), /*relu=*/true,
                      y.tensor());
    std::vector<float> wide(n * out);
    products->Product(x.tensor(), w.tensor(), Tensor(), /*relu=*/false,
                      TensorF32(wide.data(), n, out));
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t c = 0; c < out; ++c) {
        double sum = 0;
        for (int64_t k = 0; k < in; ++k) sum += x.At(i, k) * w.At(k, c);
        ASSERT_NEAR(wide[i * out + c], sum, 1e-4) << i << ", " << c;
        // The stored value is the sum in f32, rounded once.
        const float in_f32 = std::max(0.0f, wide[i * out + c] + bias[c]);
        ASSERT_EQ(y.At(i, c), F32FromBf16(Bf16FromF32(in_f32))) << i << ", " << c;
      }
    }
    EXPECT_TRUE(y.GapsAreUntouched());
  }
}

TEST_P(CpuBf16ProductsTest, InputGradientsAreThoseOfPlainLoopsAndMayBeAdded) {
  ForkJoinPool pool(2);
  const auto products = Make(&pool);
  for (const auto& [n, in, out] : kShapes) {
    SCOPED_TRACE(testing::Message() << n << " x " << in << " x " << out);
    Matrix dz(n, out, 1), w(in, out, 2), dx(n, in, 3);
    const Matrix before = dx;
    std::vector<float> wide(n * in, 0.5f);
    products->InputGradient(dz.tensor(), w.tensor(), {dx.tensor(), /*add=*/true}, Nothing);
    products->InputGradient(dz.tensor(), w.tensor(), {TensorF32(wide.data(), n, in), true},
                            Nothing);
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t c = 0; c < in; ++c) {
        double sum = 0;
        for (int64_t k = 0; k < out; ++k) sum += dz.At(i, k) * w.At(c, k);
        ASSERT_NEAR(wide[i * in + c], 0.5 + sum, 1e-4) << i << ", " << c;
        const double added = before.At(i, c) + sum;
        ASSERT_NEAR(dx.At(i, c), added, 1e-4 + std::abs(added) / 256) << i << ", " << c;
      }
    }
    EXPECT_TRUE(dx.GapsAreUntouched());
    products->InputGradient(dz.tensor(), w.tensor(), {dx.tensor(), /*add=*/false}, Nothing);
    for (int64_t i = 0; i < n && in > 0; ++i) {
      double sum = 0;
      for (int64_t k = 0; k < out; ++k) sum += dz.At(i, k) * w.At(0, k);
      ASSERT_NEAR(dx.At(i, 0), sum, 1e-4 + std::abs(sum) / 256) << i;
    }
  }
}

TEST_P(CpuBf16ProductsTest, WeightGradientsAreThoseOfPlainLoops) {
  for (const int threads : {1, 3}) {
    ForkJoinPool pool(threads);
    const auto products = Make(&pool);
    for (const auto& [n, in, out] : kShapes) {
      SCOPED_TRACE(testing::Message() << n << " x " << in << " x " << out);
      Matrix x(n, in, 1), dz(n, out, 2);
      // These are not 0 at the beginning, to check that they are overwritten.
      std::vector<float> dw(in * out, 7), db(out, 7), alone(in * out, 7);
      products->WeightGradient(x.tensor(), dz.tensor(), TensorF32(dw.data(), in, out),
                               TensorF32(db.data(), 1, out));
      products->WeightGradient(x.tensor(), dz.tensor(), TensorF32(alone.data(), in, out), Tensor());
      EXPECT_EQ(dw, alone);
      for (int64_t c = 0; c < out; ++c) {
        double total = 0;
        for (int64_t i = 0; i < n; ++i) total += dz.At(i, c);
        ASSERT_NEAR(db[c], total, 1e-4) << c;
        for (int64_t k = 0; k < in; ++k) {
          double sum = 0;
          for (int64_t i = 0; i < n; ++i) sum += x.At(i, k) * dz.At(i, c);
          ASSERT_NEAR(dw[k * out + c], sum, 1e-4) << k << ", " << c;
        }
      }
    }
  }
}

TEST_P(CpuBf16ProductsTest, ResultsAreRoundedAsConversionsAre) {
  // Ties, values that round up to infinity, and payloads of NaN.
  const std::vector<uint32_t> bits = {0x3f808000, 0x3f818000, 0x3f808001, 0x7f7fffff,
                                      0x7f800000, 0xff800000, 0x7fc12345, 0xffc12345};
  ForkJoinPool pool(1);
  const auto products = Make(&pool);
  const auto cols = static_cast<int64_t>(bits.size());
  std::vector<float> bias(bits.size());
  std::memcpy(bias.data(), bits.data(), bits.size() * sizeof(float));
  Matrix x(1, 1, 1), w(1, cols, 2), y(1, cols, 3, /*gap=*/0);
  x.Set(0, 0, 0);
  products->Product(x.tensor(), w.tensor(), TensorF32(bias.data(), 1, cols), /*relu=*/false,
                    y.tensor());
  for (int64_t c = 0; c < cols; ++c) EXPECT_EQ(y.bits()[c], Bf16FromF32(bias[c])) << c;
}

TEST_P(CpuBf16ProductsTest, SubnormalResultsAreZero) {
  ForkJoinPool pool(1);
  const auto products = Make(&pool);
  Matrix x(1, 1, 1), w(1, 1, 2), y(1, 1, 3, /*gap=*/0);
  x.Set(0, 0, 0);
  float bias = 0x1p-130f;
  products->Product(x.tensor(), w.tensor(), TensorF32(&bias, 1, 1), /*relu=*/false, y.tensor());
  EXPECT_EQ(y.bits()[0], 0);
}

TEST_P(CpuBf16ProductsTest, SubnormalFactorsCountAsZero) {
  ForkJoinPool pool(1);
  const auto products = Make(&pool);
  Matrix x(1, 1, 1), w(1, 1, 2);
  x.Set(0, 0, 0x1p-130f);
  w.Set(0, 0, 0x1p100f);
  float y = 7;
  products->Product(x.tensor(), w.tensor(), Tensor(), /*relu=*/false, TensorF32(&y, 1, 1));
  EXPECT_EQ(y, 0);
}

TEST_P(CpuBf16ProductsTest, WhatIsNotANumberStaysInItsRow) {
  constexpr int64_t kRows = 40, kIn = 9, kOut = 20;
  ForkJoinPool pool(1);
  const auto products = Make(&pool);
  Matrix x(kRows, kIn, 1), w(kIn, kOut, 2), y(kRows, kOut, 3);
  x.Set(38, 8, std::numeric_limits<float>::quiet_NaN());
  products->Product(x.tensor(), w.tensor(), Tensor(), /*relu=*/true, y.tensor());
  for (int64_t i = 0; i < kRows; ++i) {
    for (int64_t c = 0; c < kOut; ++c) EXPECT_EQ(std::isnan(y.At(i, c)), i == 38) << i << ", " << c;
  }
}

// The bits of a sum in f32 depend on its order: a sum over all samples at once would lose the small
// values here.
TEST_P(CpuBf16ProductsTest, SamplesAreSummedInPiecesOfFixedSize) {
  const int64_t piece = GetParam().sum_samples, samples = 2 * piece;
  ForkJoinPool pool(1);
  const auto products = Make(&pool);
  Matrix x(samples, 1, 1), dz(samples, 1, 2);
  for (int64_t i = 0; i < samples; ++i) {
    x.Set(i, 0, 1);
    dz.Set(i, 0, i == 0 ? 0x1p24f : i < piece ? 0 : 0x1p-1f);
  }
  float dw = 0;
  products->WeightGradient(x.tensor(), dz.tensor(), TensorF32(&dw, 1, 1), Tensor());
  EXPECT_EQ(dw, 0x1p24f + 0.5f * static_cast<float>(piece));
}

// The slices cover each row exactly once. The product reads what `before` has written to a slice's
// rows.
TEST_P(CpuBf16ProductsTest, EachSliceOfAnInputGradientIsMultipliedAfterItsOwnPreparation) {
  constexpr int64_t kRows = 700, kIn = 5, kOut = 4;
  ForkJoinPool pool(2);
  const auto products = Make(&pool);
  for (const bool wanted : {true, false}) {
    Matrix dz(kRows, kOut, 1), w(kIn, kOut, 2), dx(kRows, kIn, 3);
    for (int64_t c = 0; c < kIn; ++c) {
      for (int64_t k = 0; k < kOut; ++k) w.Set(c, k, 1);
    }
    std::vector<int> prepared(kRows, 0);
    products->InputGradient(dz.tensor(), w.tensor(),
                            {wanted ? dx.tensor() : Tensor(), /*add=*/false},
                            [&](int64_t begin, int64_t end) {
                              for (int64_t i = begin; i < end; ++i) {
                                ++prepared[i];
                                for (int64_t k = 0; k < kOut; ++k) dz.Set(i, k, 2);
                              }
                            });
    EXPECT_EQ(prepared, std::vector<int>(kRows, 1));
    for (int64_t i = 0; wanted && i < kRows; ++i) ASSERT_EQ(dx.At(i, kIn - 1), 2 * kOut) << i;
  }
}

// The parts of AMX's weight gradient are summed separately. If all samples were added up in one
// sequence, the small values would be lost.
TEST(CpuAmxBf16Test, LargeWeightGradientsAreSummedInParts) {
  if (!CpuAmxBf16::IsSupported()) GTEST_SKIP() << "this CPU has no AMX";
  constexpr int64_t kPart = CpuAmxBf16::kPartSamples, kSum = CpuAmxBf16::kSumSamples;
  ForkJoinPool pool(2);
  CpuAmxBf16 products(&pool);
  Matrix x(2 * kPart, 1, 1), dz(2 * kPart, 1, 2);
  for (int64_t i = 0; i < 2 * kPart; ++i) {
    x.Set(i, 0, 1);
    dz.Set(i, 0, i == 0 ? 0x1p24f : i < kPart || i % kSum != 0 ? 0 : 0x1p-1f);
  }
  float dw = 0, db = 0;
  products.WeightGradient(x.tensor(), dz.tensor(), TensorF32(&dw, 1, 1), TensorF32(&db, 1, 1));
  constexpr int64_t kSums = kPart / kSum;
  EXPECT_EQ(dw, 0x1p24f + 0.5f * static_cast<float>(kSums));
  EXPECT_EQ(db, dw);
}

}  // namespace
}  // namespace satrap
