#include "nn_worker/backend/cpu/cpu_kernels.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "common/numeric/random.h"
#include "common/numeric/vectorize.h"
#include "nn_worker/backend/cpu/host_tensor.h"
#include "nn_worker/operation/dropout_mask.h"

namespace satrap::cpu {
namespace {

// The number of lanes in a sum. The compiler may not reorder a float sum, so the source spells out
// an order that fits one vector register: value i is added to lane i % kVectorLanes, and the lanes
// are added pairwise.
constexpr int kVectorLanes = 16;

inline float SumOfLanes(float* lanes) {
  for (int width = kVectorLanes / 2; width > 0; width /= 2) {
    for (int k = 0; k < width; ++k) lanes[k] += lanes[k + width];
  }
  return lanes[0];
}

SATRAP_VECTORIZE_FUSED void CopyRow(const float* __restrict x, float* __restrict y, int64_t cols) {
  for (int64_t c = 0; c < cols; ++c) y[c] = x[c];
}

SATRAP_VECTORIZE_FUSED void AddRow(const float* __restrict x, float* __restrict y, int64_t cols) {
  for (int64_t c = 0; c < cols; ++c) y[c] += x[c];
}

// A NaN must stay NaN, so that the finite check finds it. Therefore this is not max(x, 0), which
// may drop a NaN.
SATRAP_VECTORIZE_FUSED void ReluRow(const float* x, float* y, int64_t cols) {
#pragma GCC ivdep
  for (int64_t c = 0; c < cols; ++c) y[c] = x[c] < 0 ? 0 : x[c];
}

SATRAP_VECTORIZE_FUSED void BiasReluRow(const float* __restrict bias, float* __restrict y,
                                        int64_t cols) {
  for (int64_t c = 0; c < cols; ++c) {
    const float value = y[c] + bias[c];
    y[c] = value < 0 ? 0 : value;
  }
}

// Applies exp only to values that are not positive, so it cannot overflow.
float Sigmoid(float x) {
  if (x >= 0) return 1.0f / (1.0f + std::exp(-x));
  const float e = std::exp(x);
  return e / (1.0f + e);
}

void ActivateRow(Activation activation, const float* x, float* y, int64_t cols) {
  switch (activation) {
    case Activation::kLinear:
      if (x != y) std::memmove(y, x, cols * sizeof(float));
      return;
    case Activation::kRelu:
      ReluRow(x, y, cols);
      return;
    case Activation::kSigmoid:
      for (int64_t c = 0; c < cols; ++c) y[c] = Sigmoid(x[c]);
      return;
    case Activation::kTanh:
      for (int64_t c = 0; c < cols; ++c) y[c] = std::tanh(x[c]);
      return;
  }
}

// In this and the next two functions dx may be dy, so the pointers cannot be __restrict. Element c
// of dx depends only on element c of the inputs; ivdep tells the compiler so.
SATRAP_VECTORIZE_FUSED void ReluGradRow(const float* y, const float* dy, float* dx, bool add,
                                        int64_t cols) {
  if (add) {
#pragma GCC ivdep
    for (int64_t c = 0; c < cols; ++c) dx[c] += y[c] > 0 ? dy[c] : 0;
  } else {
#pragma GCC ivdep
    for (int64_t c = 0; c < cols; ++c) dx[c] = y[c] > 0 ? dy[c] : 0;
  }
}

SATRAP_VECTORIZE_FUSED void SigmoidGradRow(const float* y, const float* dy, float* dx, bool add,
                                           int64_t cols) {
#pragma GCC ivdep
  for (int64_t c = 0; c < cols; ++c) {
    const float gradient = dy[c] * y[c] * (1 - y[c]);
    dx[c] = add ? dx[c] + gradient : gradient;
  }
}

SATRAP_VECTORIZE_FUSED void TanhGradRow(const float* y, const float* dy, float* dx, bool add,
                                        int64_t cols) {
#pragma GCC ivdep
  for (int64_t c = 0; c < cols; ++c) {
    const float gradient = dy[c] * (1 - y[c] * y[c]);
    dx[c] = add ? dx[c] + gradient : gradient;
  }
}

SATRAP_VECTORIZE_FUSED float Dot(const float* __restrict a, const float* __restrict b,
                                 int64_t count) {
  float lanes[kVectorLanes] = {};
  int64_t i = 0;
  for (; i + kVectorLanes <= count; i += kVectorLanes) {
    for (int k = 0; k < kVectorLanes; ++k) lanes[k] += a[i + k] * b[i + k];
  }
  for (int k = 0; i < count; ++i, ++k) lanes[k] += a[i] * b[i];
  return SumOfLanes(lanes);
}

SATRAP_VECTORIZE_FUSED void ScaleRow(const float* __restrict w, float scale, float* __restrict y,
                                     bool add, int64_t cols) {
  if (add) {
    for (int64_t c = 0; c < cols; ++c) y[c] += scale * w[c];
  } else {
    for (int64_t c = 0; c < cols; ++c) y[c] = scale * w[c];
  }
}

SATRAP_VECTORIZE_FUSED void FmRow(const absl::Span<const Tensor> xs, int64_t row,
                                  float* __restrict s, float* __restrict squares, int64_t d) {
  for (int64_t c = 0; c < d; ++c) s[c] = squares[c] = 0;
  for (const Tensor& x : xs) {
    const float* v = static_cast<const float*>(x.data) + row * x.stride;
    for (int64_t c = 0; c < d; ++c) {
      s[c] += v[c];
      squares[c] += v[c] * v[c];
    }
  }
}

SATRAP_VECTORIZE_FUSED float FmValue(const float* __restrict s, const float* __restrict squares,
                                     int64_t d) {
  float lanes[kVectorLanes] = {};
  int64_t c = 0;
  for (; c + kVectorLanes <= d; c += kVectorLanes) {
    for (int k = 0; k < kVectorLanes; ++k) lanes[k] += s[c + k] * s[c + k] - squares[c + k];
  }
  for (int k = 0; c < d; ++c, ++k) lanes[k] += s[c] * s[c] - squares[c];
  return 0.5f * SumOfLanes(lanes);
}

SATRAP_VECTORIZE_FUSED void FmGradRow(const float* __restrict x, const float* __restrict s,
                                      float dy, float* __restrict dx, bool add, int64_t d) {
  if (add) {
    for (int64_t c = 0; c < d; ++c) dx[c] += dy * (s[c] - x[c]);
  } else {
    for (int64_t c = 0; c < d; ++c) dx[c] = dy * (s[c] - x[c]);
  }
}

SATRAP_VECTORIZE_FUSED void DropoutRow(const float* __restrict x, uint32_t low, uint32_t high,
                                       uint32_t threshold, float scale, float* __restrict y,
                                       bool add, int64_t cols) {
  for (int64_t c = 0; c < cols; ++c) {
    const float keep = DropoutBits(low, high, static_cast<uint32_t>(c)) >= threshold ? scale : 0;
    y[c] = add ? y[c] + keep * x[c] : keep * x[c];
  }
}

// Sums in double: the variance is the difference of two sums. In float32 it would lose all its
// digits in a column whose mean is large.
SATRAP_VECTORIZE_FUSED void MomentsRow(const float* __restrict x, double* __restrict sums,
                                       double* __restrict squares, int64_t cols) {
  for (int64_t c = 0; c < cols; ++c) {
    const double value = x[c];
    sums[c] += value;
    squares[c] += value * value;
  }
}

SATRAP_VECTORIZE_FUSED void NormalizeRow(const float* __restrict x, const float* __restrict mean,
                                         const float* __restrict scale,
                                         const float* __restrict beta, float* __restrict y,
                                         int64_t cols) {
  for (int64_t c = 0; c < cols; ++c) y[c] = (x[c] - mean[c]) * scale[c] + beta[c];
}

// This function and the next one compute xhat again. If the forward pass stored xhat, one more
// array would have to be written and read.
SATRAP_VECTORIZE_FUSED void GradSumsRow(const float* __restrict x, const float* __restrict mean,
                                        const float* __restrict inverse_std,
                                        const float* __restrict dy, double* __restrict sums,
                                        double* __restrict products, int64_t cols) {
  for (int64_t c = 0; c < cols; ++c) {
    const float xhat = (x[c] - mean[c]) * inverse_std[c];
    sums[c] += dy[c];
    products[c] += static_cast<double>(dy[c]) * xhat;
  }
}

SATRAP_VECTORIZE_FUSED void BatchNormGradRow(
    const float* __restrict x, const float* __restrict mean, const float* __restrict inverse_std,
    const float* __restrict scale, const float* __restrict mean_dy,
    const float* __restrict mean_dy_xhat, const float* __restrict dy, float* __restrict dx,
    bool add, int64_t cols) {
  for (int64_t c = 0; c < cols; ++c) {
    const float xhat = (x[c] - mean[c]) * inverse_std[c];
    const float gradient = scale[c] * (dy[c] - mean_dy[c] - xhat * mean_dy_xhat[c]);
    dx[c] = add ? dx[c] + gradient : gradient;
  }
}

// Compares bits: a larger magnitude has larger bits, and infinities and NaNs have the largest.
SATRAP_VECTORIZE_FUSED int64_t BeyondRow(const float* x, float limit, int64_t cols) {
  uint32_t limit_bits;
  std::memcpy(&limit_bits, &limit, sizeof(limit_bits));
  uint32_t lanes[kVectorLanes] = {};
  int64_t c = 0;
  const auto bad = [x, limit_bits](int64_t i) -> uint32_t {
    uint32_t bits;
    std::memcpy(&bits, x + i, sizeof(bits));
    return (bits & 0x7fffffffu) > limit_bits;
  };
  for (; c + kVectorLanes <= cols; c += kVectorLanes) {
    for (int k = 0; k < kVectorLanes; ++k) lanes[k] += bad(c + k);
  }
  for (int k = 0; c < cols; ++c, ++k) lanes[k] += bad(c);
  int64_t count = 0;
  for (int k = 0; k < kVectorLanes; ++k) count += lanes[k];
  return count;
}

// Adds partial sums in the order of the slices, whichever thread computed them, so that the sum has
// the same bits for any number of threads.
template <typename T>
inline void AddPartialsOf(const T* __restrict partials, int64_t parts, int64_t cols,
                          T* __restrict total) {
  for (int64_t part = 0; part < parts; ++part) {
    for (int64_t c = 0; c < cols; ++c) total[c] += partials[part * cols + c];
  }
}

}  // namespace

void FillRows(Tensor y, float value, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    if (y.dtype == DType::kF64) {
      std::fill_n(DoublesOf(y, i), y.cols, static_cast<double>(value));
    } else {
      std::fill_n(FloatsOf(y, i), y.cols, value);
    }
  }
}

void CopyRows(Tensor x, Tensor y, bool add, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    if (add) {
      AddRow(FloatsOf(x, i), FloatsOf(y, i), y.cols);
    } else {
      CopyRow(FloatsOf(x, i), FloatsOf(y, i), y.cols);
    }
  }
}

void BiasActivateRows(const float* bias, Activation activation, Tensor y, int64_t begin,
                      int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    float* row = FloatsOf(y, i);
    // This case is by far the most frequent, so it has a loop that passes over the row only once.
    if (bias != nullptr && activation == Activation::kRelu) {
      BiasReluRow(bias, row, y.cols);
      continue;
    }
    if (bias != nullptr) AddRow(bias, row, y.cols);
    ActivateRow(activation, row, row, y.cols);
  }
}

void ActivateRows(Activation activation, Tensor x, Tensor y, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i)
    ActivateRow(activation, FloatsOf(x, i), FloatsOf(y, i), y.cols);
}

void ActivateGradRows(Activation activation, Tensor y, Tensor dy, GradientTarget dx, int64_t begin,
                      int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    float* target = FloatsOf(dx.tensor, i);
    switch (activation) {
      case Activation::kLinear:
        if (dx.add) {
          AddRow(FloatsOf(dy, i), target, y.cols);
        } else if (target != FloatsOf(dy, i)) {
          CopyRow(FloatsOf(dy, i), target, y.cols);
        }
        break;
      case Activation::kRelu:
        ReluGradRow(FloatsOf(y, i), FloatsOf(dy, i), target, dx.add, y.cols);
        break;
      case Activation::kSigmoid:
        SigmoidGradRow(FloatsOf(y, i), FloatsOf(dy, i), target, dx.add, y.cols);
        break;
      case Activation::kTanh:
        TanhGradRow(FloatsOf(y, i), FloatsOf(dy, i), target, dx.add, y.cols);
        break;
    }
  }
}

void DotRows(Tensor x, const float* w, float bias, Activation activation, Tensor y, int64_t begin,
             int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    float value = Dot(FloatsOf(x, i), w, x.cols) + bias;
    ActivateRow(activation, &value, FloatsOf(y, i), 1);
  }
}

void OuterRows(Tensor dz, const float* w, GradientTarget dx, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    ScaleRow(w, *FloatsOf(dz, i), FloatsOf(dx.tensor, i), dx.add, dx.tensor.cols);
  }
}

void WeightedColumnSums(Tensor x, Tensor scale, int64_t begin, int64_t end, float* sums) {
  std::fill_n(sums, x.cols, 0.0f);
  for (int64_t i = begin; i < end; ++i) {
    if (scale.empty()) {
      AddRow(FloatsOf(x, i), sums, x.cols);
    } else {
      ScaleRow(FloatsOf(x, i), *FloatsOf(scale, i), sums, /*add=*/true, x.cols);
    }
  }
}

void AddPartials(const float* partials, int64_t parts, int64_t cols, float* total) {
  AddPartialsOf(partials, parts, cols, total);
}
void AddPartials(const double* partials, int64_t parts, int64_t cols, double* total) {
  AddPartialsOf(partials, parts, cols, total);
}

void TransposeRows(const float* in, int64_t cols, int64_t begin, int64_t end, float* out,
                   int64_t out_stride) {
  // Sixteen columns fill a cache line of the input, so the whole line is used before it is evicted.
  constexpr int64_t kTile = 16;
  for (int64_t c0 = 0; c0 < cols; c0 += kTile) {
    const int64_t c1 = std::min(cols, c0 + kTile);
    for (int64_t r = begin; r < end; ++r) {
      for (int64_t c = c0; c < c1; ++c) out[c * out_stride + r] = in[r * cols + c];
    }
  }
}

void RowSumRows(absl::Span<const Tensor> xs, Tensor y, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    float sum = 0;
    for (const Tensor& x : xs) {
      const float* row = FloatsOf(x, i);
      for (int64_t c = 0; c < x.cols; ++c) sum += row[c];
    }
    *FloatsOf(y, i) = sum;
  }
}

void RowSumGradRows(Tensor dy, absl::Span<const Tensor> dxs, bool add, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    const float gradient = *FloatsOf(dy, i);
    for (const Tensor& dx : dxs) {
      float* row = FloatsOf(dx, i);
      for (int64_t c = 0; c < dx.cols; ++c) row[c] = add ? row[c] + gradient : gradient;
    }
  }
}

void FmRows(absl::Span<const Tensor> xs, Tensor s, Tensor y, int64_t begin, int64_t end) {
  // The backward pass needs the sums, so they are stored in a tensor; it does not need the squares.
  std::unique_ptr<float[]> squares(new float[s.cols]);
  for (int64_t i = begin; i < end; ++i) {
    FmRow(xs, i, FloatsOf(s, i), squares.get(), s.cols);
    *FloatsOf(y, i) = FmValue(FloatsOf(s, i), squares.get(), s.cols);
  }
}

void FmGradRows(absl::Span<const Tensor> xs, Tensor s, Tensor dy,
                absl::Span<const GradientTarget> dxs, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    for (size_t f = 0; f < xs.size(); ++f) {
      if (!dxs[f].wanted()) continue;
      FmGradRow(FloatsOf(xs[f], i), FloatsOf(s, i), *FloatsOf(dy, i), FloatsOf(dxs[f].tensor, i),
                dxs[f].add, s.cols);
    }
  }
}

void DropoutRows(Tensor x, uint64_t key, int64_t first_sample, float rate, Tensor y, bool add,
                 int64_t begin, int64_t end) {
  const uint32_t threshold = DropoutThreshold(rate);
  const float scale = 1.0f / (1.0f - rate);
  for (int64_t i = begin; i < end; ++i) {
    const uint64_t bits = RandomBits(key, static_cast<uint64_t>(first_sample + i));
    // The mask depends only on its key, the sample's number and the column. So the backward pass
    // computes the same mask, and none is stored.
    DropoutRow(FloatsOf(x, i), static_cast<uint32_t>(bits), static_cast<uint32_t>(bits >> 32),
               threshold, scale, FloatsOf(y, i), add, y.cols);
  }
}

void MomentsRows(Tensor x, int64_t begin, int64_t end, double* sums) {
  std::fill_n(sums, 2 * x.cols, 0.0);
  for (int64_t i = begin; i < end; ++i) MomentsRow(FloatsOf(x, i), sums, sums + x.cols, x.cols);
}

void NormalizeRows(Tensor x, const float* mean, const float* scale, const float* beta, Tensor y,
                   int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    NormalizeRow(FloatsOf(x, i), mean, scale, beta, FloatsOf(y, i), x.cols);
  }
}

void BatchNormGradSumsRows(Tensor x, Tensor stats, Tensor dy, int64_t begin, int64_t end,
                           double* sums) {
  std::fill_n(sums, 2 * x.cols, 0.0);
  for (int64_t i = begin; i < end; ++i) {
    GradSumsRow(FloatsOf(x, i), FloatsOf(stats, 0), FloatsOf(stats, 1), FloatsOf(dy, i), sums,
                sums + x.cols, x.cols);
  }
}

void BatchNormGradRows(Tensor x, Tensor stats, const float* scale, const float* mean_dy,
                       const float* mean_dy_xhat, Tensor dy, GradientTarget dx, int64_t begin,
                       int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    BatchNormGradRow(FloatsOf(x, i), FloatsOf(stats, 0), FloatsOf(stats, 1), scale, mean_dy,
                     mean_dy_xhat, FloatsOf(dy, i), FloatsOf(dx.tensor, i), dx.add, x.cols);
  }
}

void BceRows(float gradient_scale, Tensor logits, Tensor labels, Tensor weights, Tensor mask,
             Tensor dlogits, int64_t begin, int64_t end, double* sums) {
  // Summed in double: a float32 sum over thousands of samples would lose digits that metrics show.
  double loss = 0;
  double total = 0;
  for (int64_t i = begin; i < end; ++i) {
    // A masked sample is left out, not multiplied by 0, because its label may be NaN.
    if (!mask.empty() && *FloatsOf(mask, i) == 0) {
      *FloatsOf(dlogits, i) = 0;
      continue;
    }
    const float weight = weights.empty() ? 1.0f : *FloatsOf(weights, i);
    const float z = *FloatsOf(logits, i);
    const float y = *FloatsOf(labels, i);
    loss += weight * (std::max(z, 0.0f) - z * y + std::log1p(std::exp(-std::abs(z))));
    total += weight;
    *FloatsOf(dlogits, i) = gradient_scale * (weight * (Sigmoid(z) - y));
  }
  sums[0] = loss;
  sums[1] = total;
}

int64_t BeyondRows(Tensor x, float limit, int64_t begin, int64_t end) {
  int64_t count = 0;
  for (int64_t i = begin; i < end; ++i) count += BeyondRow(FloatsOf(x, i), limit, x.cols);
  return count;
}

}  // namespace satrap::cpu
