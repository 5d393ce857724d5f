#include "nn_worker/backend/cpu/cpu_half_operation.h"

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

// A BF16 tensor that represents a concatenation: value (i, c) is 100 i + c.
class CpuHalfOperationTest : public testing::Test {
 protected:
  static constexpr int64_t kRows = 6, kCols = 12;

  CpuHalfOperationTest() : pool_(1), memory_{&pool_, {}}, bits_(kRows * kCols) {
    for (int64_t i = 0; i < kRows; ++i) {
      for (int64_t c = 0; c < kCols; ++c) {
        bits_[i * kCols + c] = Bf16FromF32(static_cast<float>(100 * i + c));
      }
    }
  }
  Tensor Columns(int64_t begin, int64_t count) {
    return Tensor{DType::kBF16, bits_.data(), kRows, kCols, kCols}.Columns(begin, count);
  }
  float HalfAt(int64_t i, int64_t c) const { return F32FromBf16(bits_[i * kCols + c]); }
  static float& At(const Tensor& wide, int64_t i, int64_t c) {
    return static_cast<float*>(wide.data)[i * wide.stride + c];
  }

  ForkJoinPool pool_;
  HalfMemory memory_;
  std::vector<uint16_t> bits_;
};

TEST_F(CpuHalfOperationTest, ReadsTheRowsThatItIsAbout) {
  HalfOperation operation(&memory_, 2, 3);
  const Tensor wide = operation.Read(Columns(4, 5));
  ASSERT_EQ(wide.rows, 3);
  ASSERT_EQ(wide.cols, 5);
  EXPECT_EQ(At(wide, 0, 0), 204);
  EXPECT_EQ(At(wide, 2, 4), 408);
}

TEST_F(CpuHalfOperationTest, F32IsItsOwnOperand) {
  std::vector<float> values(kRows);
  const Tensor tensor = TensorF32(values.data(), kRows, 1);
  HalfOperation operation(&memory_, 2, 3);
  EXPECT_EQ(operation.Write(tensor).data, values.data() + 2);
  EXPECT_TRUE(operation.Read(Tensor()).empty());
}

TEST_F(CpuHalfOperationTest, WritesBackTheRowsThatItIsAbout) {
  {
    HalfOperation operation(&memory_, 1, 2);
    const Tensor wide = operation.Write(Columns(0, 1));
    for (int64_t i = 0; i < 2; ++i) At(wide, i, 0) = 7 + 0x1p-9f;  // rounded
  }
  EXPECT_EQ(HalfAt(0, 0), 0);
  EXPECT_EQ(HalfAt(1, 0), 7);
  EXPECT_EQ(HalfAt(2, 0), 7);
  EXPECT_EQ(HalfAt(3, 0), F32FromBf16(Bf16FromF32(300)));
  EXPECT_EQ(HalfAt(1, 1), 101) << "the column beside it";
}

TEST_F(CpuHalfOperationTest, NeighboursAreConvertedTogetherInAnyOrder) {
  const std::vector<Tensor> inputs = {Columns(8, 4), Columns(0, 4), Columns(4, 4)};
  HalfOperation operation(&memory_);
  const std::vector<Tensor> wide = operation.ReadAll(inputs);
  EXPECT_EQ(memory_.scratch.size(), 1u);
  EXPECT_EQ(At(wide[0], 0, 0), 8);
  EXPECT_EQ(At(wide[1], 1, 3), 103);
  EXPECT_EQ(At(wide[2], 2, 1), 205);
}

TEST_F(CpuHalfOperationTest, NeighboursAreWrittenTogetherInAnyOrder) {
  for (const bool add : {false, true}) {
    const std::vector<GradientTarget> targets = {
        {Columns(8, 4), add}, {Columns(0, 3), add}, {Columns(3, 5), add}};
    {
      HalfOperation operation(&memory_, 1, 2);
      const std::vector<GradientTarget> wide = operation.Targets(targets);
      for (size_t t = 0; t < wide.size(); ++t) {
        for (int64_t i = 0; i < 2; ++i) {
          for (int64_t c = 0; c < wide[t].tensor.cols; ++c) {
            float& value = At(wide[t].tensor, i, c);
            value = static_cast<float>(t) + (add ? value : 1);
          }
        }
      }
    }
    EXPECT_EQ(memory_.scratch.size(), 1u);
    const float of_target[] = {0, 1, 2};
    for (int64_t c = 0; c < kCols; ++c) {
      const float added = of_target[c < 3 ? 1 : c < 8 ? 2 : 0];
      EXPECT_EQ(HalfAt(1, c), add ? 1 + 2 * added : 1 + added) << c;
      EXPECT_EQ(HalfAt(2, c), add ? 1 + 2 * added : 1 + added) << c;
      EXPECT_EQ(HalfAt(0, c), c) << "of no row of the operation";
    }
  }
}

TEST_F(CpuHalfOperationTest, WhatTwoInputsShareHasOneCopy) {
  {
    HalfOperation operation(&memory_);
    const std::vector<GradientTarget> wide = operation.Targets(
        {{Columns(0, 2), false}, {Columns(2, 2), true}, {Columns(0, 2), true}, {Tensor(), false}});
    EXPECT_EQ(wide[0].tensor.data, wide[2].tensor.data);
    EXPECT_TRUE(wide[3].tensor.empty());
    EXPECT_EQ(At(wide[1].tensor, 3, 1), F32FromBf16(Bf16FromF32(303))) << "what is added to";
    for (int64_t i = 0; i < kRows; ++i) {
      for (int64_t c = 0; c < 2; ++c) {
        At(wide[0].tensor, i, c) = 1;
        At(wide[2].tensor, i, c) += 2;
      }
    }
  }
  EXPECT_EQ(HalfAt(5, 1), 3);
  EXPECT_EQ(HalfAt(0, 3), 3) << "as it was";
}

TEST_F(CpuHalfOperationTest, APartOfWhatIsWrittenIsItsColumns) {
  HalfOperation operation(&memory_);
  const Tensor all = operation.Write(Columns(0, 8));
  const Tensor part = operation.Write(Columns(3, 2));
  EXPECT_EQ(part.data, &At(all, 0, 3));
  EXPECT_NE(operation.Write(Columns(7, 2)).data, &At(all, 0, 7)) << "it ends beyond";
}

constexpr int64_t kFmRows = 150, kFields = 5;

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
  // The values after rounding to BF16.
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
    const Tensor x = New(backend, dtype, kFmRows, kFields * dim, 1);
    const Tensor dx = New(backend, dtype, kFmRows, kFields * dim, 2);
    std::vector<Tensor> xs;
    std::vector<GradientTarget> dxs;
    for (int64_t f = 0; f < kFields; ++f) {
      xs.push_back(x.Columns(f * dim, dim));
      dxs.push_back({dx.Columns(shared ? 0 : f * dim, dim), add});
    }
    if (!shared) dxs[2] = {};
    const Tensor s = New(backend, DType::kF32, kFmRows, dim, 3);
    const Tensor y = New(backend, dtype, kFmRows, 1, 4);
    backend->Fm(xs, s, y);
    backend->FmGrad(xs, s, New(backend, dtype, kFmRows, 1, 5), dxs);
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
