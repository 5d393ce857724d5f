#include "nn_worker/backend/cpu/cpu_sequence_pool.h"

#include <algorithm>
#include <cmath>

#include "common/numeric/vectorize.h"
#include "nn_worker/backend/cpu/host_tensor.h"

namespace satrap::cpu {
namespace {

SATRAP_VECTORIZE_FUSED void PutRow(const float* __restrict x, float* __restrict y, bool add,
                                   int64_t cols) {
  for (int64_t c = 0; c < cols; ++c) y[c] = add ? y[c] + x[c] : x[c];
}

SATRAP_VECTORIZE_FUSED void ScaleRow(float scale, float* __restrict y, int64_t cols) {
  for (int64_t c = 0; c < cols; ++c) y[c] *= scale;
}

// If either value is NaN, so is the result, so that the finite check finds it.
SATRAP_VECTORIZE_FUSED void MaxRow(const float* __restrict x, float* __restrict y, int64_t cols) {
  for (int64_t c = 0; c < cols; ++c) y[c] = x[c] <= y[c] || y[c] != y[c] ? y[c] : x[c];
}

// Where x is the maximum, moves the gradient from dy to dx and clears it in dy, so that a later
// position with the same value gets nothing.
SATRAP_VECTORIZE_FUSED void MaxGradRow(const float* __restrict x, const float* __restrict y,
                                       float* __restrict dy, float* __restrict dx, bool add,
                                       int64_t cols) {
  for (int64_t c = 0; c < cols; ++c) {
    const bool taken = x[c] == y[c];
    const float gradient = taken ? dy[c] : 0;
    dx[c] = add ? dx[c] + gradient : gradient;
    if (taken) dy[c] = 0;
  }
}

// The length of a sequence in positions: rounded and clamped to [0, most]; 0 for NaN.
int64_t PositionsOf(float length, int64_t most) {
  if (!(length >= 0.5f)) return 0;
  return length >= static_cast<float>(most) ? most : std::lround(length);
}

}  // namespace

void SequencePoolRows(SequencePooling pooling, Tensor x, Tensor lengths, Tensor y, int64_t begin,
                      int64_t end) {
  const int64_t d = y.cols;
  for (int64_t i = begin; i < end; ++i) {
    const int64_t length = PositionsOf(*FloatsOf(lengths, i), x.cols / d);
    float* to = FloatsOf(y, i);
    // The first position is assigned, not added, so only an empty sequence needs zeros.
    if (length == 0) std::fill_n(to, d, 0.0f);
    for (int64_t p = 0; p < length; ++p) {
      const float* from = FloatsOf(x, i) + p * d;
      if (p > 0 && pooling == SequencePooling::kMax) {
        MaxRow(from, to, d);
      } else {
        PutRow(from, to, /*add=*/p > 0, d);
      }
    }
    if (pooling == SequencePooling::kMean && length > 1) {
      ScaleRow(1.0f / static_cast<float>(length), to, d);
    }
  }
}

void SequencePoolGradRows(SequencePooling pooling, Tensor x, Tensor lengths, Tensor y, Tensor dy,
                          GradientTarget dx, int64_t begin, int64_t end) {
  const int64_t d = y.cols;
  for (int64_t i = begin; i < end; ++i) {
    const int64_t length = PositionsOf(*FloatsOf(lengths, i), x.cols / d);
    float* gradient = FloatsOf(dy, i);
    float* to = FloatsOf(dx.tensor, i);
    if (pooling == SequencePooling::kMean && length > 1) {
      ScaleRow(1.0f / static_cast<float>(length), gradient, d);
    }
    for (int64_t p = 0; p < length; ++p) {
      if (pooling == SequencePooling::kMax) {
        MaxGradRow(FloatsOf(x, i) + p * d, FloatsOf(y, i), gradient, to + p * d, dx.add, d);
      } else {
        PutRow(gradient, to + p * d, dx.add, d);
      }
    }
    // Otherwise values that the last batch left in memory would count as gradients of padding.
    if (!dx.add) std::fill(to + length * d, to + x.cols, 0.0f);
  }
}

}  // namespace satrap::cpu
