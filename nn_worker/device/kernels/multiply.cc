#include "nn_worker/device/kernels/multiply.h"

#include "nn_worker/device/kernel.h"
#include "nn_worker/device/kernels/elementwise.h"
#include "nn_worker/device/kernels/value_access.h"

namespace satrap {
namespace {

SATRAP_KERNEL void ScaleKernel(float factor, ConstValues x, Values y, bool add) {
  ForEachGroup(y.rows, GroupsOf(y.cols), [&](int64_t r, int64_t g) {
    Group values = LoadGroup(x, r, g * kGroup);
    for (int i = 0; i < kGroup; ++i) values.lane[i] *= factor;
    PutGroup(y, r, g * kGroup, values, add);
  });
}

// The shape of b in MultiplyValues.
enum class FactorShape : int32_t { kSame, kOneARow, kEachGroup };

SATRAP_KERNEL void MultiplyKernel(ConstValues a, ConstValues b, FactorShape shape, Values y,
                                  bool add) {
  ForEachGroup(y.rows, GroupsOf(y.cols), [&](int64_t r, int64_t g) {
    const int64_t c = g * kGroup;
    Group values = LoadGroup(a, r, c), factors;
    if (shape == FactorShape::kSame) {
      factors = LoadGroup(b, r, c);
    } else if (shape == FactorShape::kOneARow) {
      const float factor = LoadValue(b, r, 0);
      factors = {{factor, factor, factor, factor}};
    } else {
      for (int i = 0; i < kGroup; ++i) factors.lane[i] = LoadValue(b, 0, (c + i) % b.cols);
    }
    for (int i = 0; i < kGroup; ++i) values.lane[i] *= factors.lane[i];
    PutGroup(y, r, c, values, add);
  });
}

// Neighbouring threads write neighbouring groups. The values that they read may be anywhere in the
// row, which is small enough for a cache.
SATRAP_KERNEL void TransposeKernel(ConstValues x, int64_t width, Values y, bool add) {
  const int64_t height = x.cols / width;
  ForEachGroup(y.rows, GroupsOf(y.cols), [&](int64_t r, int64_t g) {
    const int64_t c = g * kGroup;
    Group values = {};
    for (int i = 0; i < kGroup && c + i < y.cols; ++i) {
      const int64_t at = c + i;
      values.lane[i] = LoadValue(x, r, at % height * width + at / height);
    }
    PutGroup(y, r, c, values, add);
  });
}

FactorShape ShapeOfFactor(const ConstValues& b, const Values& y) {
  if (b.rows == y.rows && b.cols == y.cols) return FactorShape::kSame;
  if (b.rows == y.rows && b.cols == 1) return FactorShape::kOneARow;
  return FactorShape::kEachGroup;
}

}  // namespace

void ScaleValues(DeviceStream* stream, float factor, ConstValues x, Values y, bool add) {
  if (y.rows == 0 || y.cols == 0) return;
  const ElementwiseShape shape = ShapeOf(y.rows, GroupsOf(y.cols));
  Launch<ScaleKernel>(stream, shape.grid, shape.block, 0, factor, x, y, add);
}

void MultiplyValues(DeviceStream* stream, ConstValues a, ConstValues b, Values y, bool add) {
  if (y.rows == 0 || y.cols == 0) return;
  const ElementwiseShape shape = ShapeOf(y.rows, GroupsOf(y.cols));
  Launch<MultiplyKernel>(stream, shape.grid, shape.block, 0, a, b, ShapeOfFactor(b, y), y, add);
}

void TransposeRows(DeviceStream* stream, ConstValues x, int64_t width, Values y, bool add) {
  if (y.rows == 0 || y.cols == 0) return;
  const ElementwiseShape shape = ShapeOf(y.rows, GroupsOf(y.cols));
  Launch<TransposeKernel>(stream, shape.grid, shape.block, 0, x, width, y, add);
}

}  // namespace satrap
