#include "nn_worker/backend/testing/half_conformance.h"

#include <cmath>

#include "common/base/check.h"
#include "common/numeric/half.h"
#include "common/numeric/random.h"
#include "nn_worker/backend/tensor_copy.h"

namespace satrap {

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(HalfConformance);

namespace {

// Half the distance between neighbouring values of `dtype`, relative to the values.
double HalfUnit(DType dtype) { return dtype == DType::kF16 ? 0x1p-11 : 0x1p-8; }

}  // namespace

std::vector<uint16_t> HalfConformance::BitsOf(DType dtype, const std::vector<float>& values) {
  std::vector<uint16_t> bits(values.size());
  for (size_t i = 0; i < bits.size(); ++i) {
    bits[i] = dtype == DType::kF16 ? F16FromF32(values[i]) : Bf16FromF32(values[i]);
  }
  return bits;
}

std::vector<float> HalfConformance::HalfValues(Tensor x) {
  if (x.dtype == DType::kF32) return Values(x);
  std::vector<uint16_t> bits(x.size());
  CopyOut(backend_.get(), x, absl::MakeSpan(bits));
  backend_->Sync();
  std::vector<float> values;
  for (const uint16_t value : bits) {
    values.push_back(x.dtype == DType::kF16 ? F32FromF16(value) : F32FromBf16(value));
  }
  return values;
}

HalfConformance::Twin HalfConformance::TwinOf(Tensor half) {
  const Tensor want = NewReference(half.rows, half.cols);
  CopyIn(reference_.get(), HalfValues(half), want);
  return {half, want};
}

HalfConformance::Twin HalfConformance::RandomTwin(DType dtype, int64_t rows, int64_t cols, int salt,
                                                  int64_t stride) {
  const Tensor half = New(rows, cols, stride, dtype);
  std::vector<float> values;
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t c = 0; c < cols; ++c) {
      values.push_back(static_cast<float>(2 * UniformDouble(RandomBits(salt, i, c)) - 1));
    }
  }
  CopyIn(backend_.get(), BitsOf(dtype, values), half);
  return TwinOf(half);
}

void HalfConformance::ExpectTwins(const Twin& twin) {
  const std::vector<float> got = HalfValues(twin.half);
  const std::vector<float> want = ReadFloats(reference_.get(), twin.want);
  const double relative = twin.half.dtype == DType::kF32 ? 0 : HalfUnit(twin.half.dtype);
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(got[i], want[i], relative * std::abs(want[i]) + 1e-4)
        << "value " << i << " of (" << twin.half.rows << ", " << twin.half.cols << ")";
  }
}

std::vector<Tensor> HalfConformance::Halves(const std::vector<Twin>& twins) {
  std::vector<Tensor> tensors;
  for (const Twin& twin : twins) tensors.push_back(twin.half);
  return tensors;
}
std::vector<Tensor> HalfConformance::Wants(const std::vector<Twin>& twins) {
  std::vector<Tensor> tensors;
  for (const Twin& twin : twins) tensors.push_back(twin.want);
  return tensors;
}

}  // namespace satrap
