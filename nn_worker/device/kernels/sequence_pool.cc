#include "nn_worker/device/kernels/sequence_pool.h"

#include "nn_worker/device/kernel.h"
#include "nn_worker/device/kernels/elementwise.h"
#include "nn_worker/device/kernels/value_access.h"

namespace satrap {
namespace {

// Rounds to the nearest integer, halves up. Lengths are a graph input like any other, so they are
// floats.
SATRAP_DEVICE int64_t LengthOf(float length, int64_t most) {
  if (!(length > 0)) return 0;
  if (length >= static_cast<float>(most)) return most;
  const auto whole = static_cast<int64_t>(length);
  return length - static_cast<float>(whole) >= 0.5f ? whole + 1 : whole;
}

SATRAP_KERNEL void PoolKernel(SequencePooling pooling, ConstValues x, ConstValues lengths,
                              Values y) {
  ForEachGroup(y.rows, GroupsOf(y.cols), [&](int64_t r, int64_t g) {
    const int64_t c = g * kGroup, left = y.cols - c;
    const int64_t length = LengthOf(LoadValue(lengths, r, 0), x.cols / y.cols);
    Group result = {};
    for (int64_t p = 0; p < length; ++p) {
      const Group values = LoadGroup(x, r, p * y.cols + c, left);
      for (int i = 0; i < kGroup; ++i) {
        const float value = values.lane[i];
        if (pooling != SequencePooling::kMax) {
          result.lane[i] += value;
        } else if (p == 0 || value != value || value > result.lane[i]) {
          // A NaN must become the maximum, so that the finite check finds it. NaN is tested
          // separately, because every comparison with NaN is false.
          result.lane[i] = value;
        }
      }
    }
    if (pooling == SequencePooling::kMean && length > 0) {
      for (int i = 0; i < kGroup; ++i) result.lane[i] /= static_cast<float>(length);
    }
    StoreGroup(y, r, c, result);
  });
}

SATRAP_KERNEL void PoolGradKernel(SequencePooling pooling, ConstValues x, ConstValues lengths,
                                  ConstValues y, ConstValues dy, Values dx, bool add) {
  ForEachGroup(y.rows, GroupsOf(y.cols), [&](int64_t r, int64_t g) {
    const int64_t c = g * kGroup, left = y.cols - c, positions = x.cols / y.cols;
    const int64_t length = LengthOf(LoadValue(lengths, r, 0), positions);
    Group share = LoadGroup(dy, r, c);
    const Group maximum = LoadGroup(y, r, c);
    if (pooling == SequencePooling::kMean && length > 0) {
      for (int i = 0; i < kGroup; ++i) share.lane[i] /= static_cast<float>(length);
    }
    for (int64_t p = 0; p < positions; ++p) {
      const int64_t at = p * y.cols + c;
      Group gradient = {};
      if (p < length && pooling != SequencePooling::kMax) gradient = share;
      if (p < length && pooling == SequencePooling::kMax) {
        const Group values = LoadGroup(x, r, at, left);
        for (int i = 0; i < kGroup; ++i) {
          if (values.lane[i] != maximum.lane[i]) continue;
          // The first position that attains the maximum gets the whole gradient.
          gradient.lane[i] = share.lane[i];
          share.lane[i] = 0;
        }
      }
      PutGroup(dx, r, at, gradient, left, add);
    }
  });
}

}  // namespace

void PoolSequences(DeviceStream* stream, SequencePooling pooling, ConstValues x,
                   ConstValues lengths, Values y) {
  if (y.rows == 0) return;
  const ElementwiseShape shape = ShapeOf(y.rows, GroupsOf(y.cols));
  Launch<PoolKernel>(stream, shape.grid, shape.block, 0, pooling, WithGroupsAt(x, y.cols), lengths,
                     y);
}

void PoolSequencesGrad(DeviceStream* stream, SequencePooling pooling, ConstValues x,
                       ConstValues lengths, ConstValues y, ConstValues dy, Values dx, bool add) {
  if (y.rows == 0) return;
  const ElementwiseShape shape = ShapeOf(y.rows, GroupsOf(y.cols));
  Launch<PoolGradKernel>(stream, shape.grid, shape.block, 0, pooling, WithGroupsAt(x, y.cols),
                         lengths, y, dy, WithGroupsAt(dx, y.cols), add);
}

}  // namespace satrap
