#include "nn_worker/backend/cpu/cpu_half_fm.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <vector>

#include "common/numeric/half.h"
#include "common/numeric/vectorize.h"
#include "nn_worker/backend/cpu/host_tensor.h"

namespace satrap::cpu {
namespace {

// As in cpu_kernels.cc: value i is added to lane i % kVectorLanes, and the lanes are
// added pairwise.
constexpr int64_t kVectorLanes = 16;
// The number of columns whose sums stay in registers. The compiler makes one vector of them.
constexpr int64_t kColumns = 8;

uint16_t* HalvesOfRow(const Tensor& tensor, int64_t row) {
  return reinterpret_cast<uint16_t*>(BytesOf(tensor, row));
}

// Inlined by force: the compiler would not inline this function into functions with other compiler
// options, and these would then not be vectorised.
__attribute__((always_inline)) inline float Wide(uint16_t half) {
  const uint32_t bits = uint32_t{half} << 16;
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

// As Bf16FromF32, in a form that the compiler vectorises.
__attribute__((always_inline)) inline uint16_t Narrow(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const uint32_t nan = (bits >> 16) | 0x40u;
  return static_cast<uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? nan : rounded);
}

float Value(const Tensor& tensor, int64_t row) {
  return tensor.dtype == DType::kBF16 ? Wide(*HalvesOfRow(tensor, row)) : *FloatsOf(tensor, row);
}

// s = the sums, squares = the sums of squares of columns [0, d) of the rows at `xs`.
SATRAP_VECTORIZE_FUSED void SumRows(const uint16_t* const* xs, int64_t count, float* __restrict s,
                                    float* __restrict squares, int64_t d) {
  int64_t c = 0;
  for (; c + kColumns <= d; c += kColumns) {
    float sum[kColumns] = {}, square[kColumns] = {};
    for (int64_t f = 0; f < count; ++f) {
      const uint16_t* const x = xs[f] + c;
      for (int64_t k = 0; k < kColumns; ++k) {
        const float value = Wide(x[k]);
        sum[k] += value;
        square[k] += value * value;
      }
    }
    for (int64_t k = 0; k < kColumns; ++k) {
      s[c + k] = sum[k];
      squares[c + k] = square[k];
    }
  }
  for (; c < d; ++c) {
    float sum = 0, square = 0;
    for (int64_t f = 0; f < count; ++f) {
      const float value = Wide(xs[f][c]);
      sum += value;
      square += value * value;
    }
    s[c] = sum;
    squares[c] = square;
  }
}

SATRAP_VECTORIZE_FUSED float ValueOfSums(const float* __restrict s, const float* __restrict squares,
                                         int64_t d) {
  float lanes[kVectorLanes] = {};
  int64_t c = 0;
  for (; c + kVectorLanes <= d; c += kVectorLanes) {
    for (int64_t k = 0; k < kVectorLanes; ++k) lanes[k] += s[c + k] * s[c + k] - squares[c + k];
  }
  for (int64_t k = 0; c < d; ++c, ++k) lanes[k] += s[c] * s[c] - squares[c];
  for (int64_t width = kVectorLanes / 2; width > 0; width /= 2) {
    for (int64_t k = 0; k < width; ++k) lanes[k] += lanes[k + width];
  }
  return 0.5f * lanes[0];
}

SATRAP_VECTORIZE_FUSED void GradRow(const uint16_t* __restrict x, const float* __restrict s,
                                    float dy, uint16_t* __restrict dx, bool add, int64_t d) {
  if (add) {
    for (int64_t c = 0; c < d; ++c) {
      float gradient = Wide(dx[c]);
      gradient += dy * (s[c] - Wide(x[c]));
      dx[c] = Narrow(gradient);
    }
  } else {
    for (int64_t c = 0; c < d; ++c) dx[c] = Narrow(dy * (s[c] - Wide(x[c])));
  }
}

}  // namespace

bool TakesHalfFm(absl::Span<const Tensor> xs, absl::Span<const GradientTarget> dxs) {
  const auto is_bf16 = [](const Tensor& tensor) { return tensor.dtype == DType::kBF16; };
  if (!std::all_of(xs.begin(), xs.end(), is_bf16)) return false;
  std::vector<const uint8_t*> begins;
  for (const GradientTarget& dx : dxs) {
    if (!dx.wanted()) continue;
    if (!is_bf16(dx.tensor)) return false;
    begins.push_back(BytesOf(dx.tensor));
  }
  // All have the same number of columns.
  std::sort(begins.begin(), begins.end(), std::less<>());
  const int64_t bytes = xs.empty() ? 0 : xs[0].cols * DTypeBytes(DType::kBF16);
  for (size_t i = 1; i < begins.size(); ++i) {
    if (begins[i] - begins[i - 1] < bytes) return false;
  }
  return true;
}

void FmHalfRows(absl::Span<const Tensor> xs, const Tensor& s, const Tensor& y, int64_t begin,
                int64_t end) {
  std::vector<float> sums(2 * s.cols);
  std::vector<const uint16_t*> rows(xs.size());
  for (int64_t i = begin; i < end; ++i) {
    for (size_t f = 0; f < xs.size(); ++f) rows[f] = HalvesOfRow(xs[f], i);
    float* const squares = sums.data() + s.cols;
    SumRows(rows.data(), static_cast<int64_t>(rows.size()), sums.data(), squares, s.cols);
    const float value = ValueOfSums(sums.data(), squares, s.cols);
    const absl::Span<const float> of_columns(sums.data(), s.cols);
    if (s.dtype == DType::kBF16) {
      Bf16FromF32(of_columns, {HalvesOfRow(s, i), static_cast<size_t>(s.cols)});
    } else {
      std::copy(of_columns.begin(), of_columns.end(), FloatsOf(s, i));
    }
    if (y.dtype == DType::kBF16) {
      *HalvesOfRow(y, i) = Bf16FromF32(value);
    } else {
      *FloatsOf(y, i) = value;
    }
  }
}

void FmGradHalfRows(absl::Span<const Tensor> xs, const Tensor& s, const Tensor& dy,
                    absl::Span<const GradientTarget> dxs, int64_t begin, int64_t end) {
  std::vector<float> wide(s.cols);
  for (int64_t i = begin; i < end; ++i) {
    const float* sums = wide.data();
    if (s.dtype == DType::kBF16) {
      F32FromBf16({HalvesOfRow(s, i), wide.size()}, absl::MakeSpan(wide));
    } else {
      sums = FloatsOf(s, i);
    }
    const float gradient = Value(dy, i);
    for (size_t f = 0; f < xs.size(); ++f) {
      if (!dxs[f].wanted()) continue;
      GradRow(HalvesOfRow(xs[f], i), sums, gradient, HalvesOfRow(dxs[f].tensor, i), dxs[f].add,
              s.cols);
    }
  }
}

}  // namespace satrap::cpu
