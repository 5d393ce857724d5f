#include "nn_worker/device/kernels/group_normalization.h"

#include "nn_worker/device/kernel.h"
#include "nn_worker/device/kernels/elementwise.h"
#include "nn_worker/device/kernels/value_access.h"
#include "nn_worker/device/kernels/warp_sum.h"

namespace satrap {
namespace {

// The groups of a matrix. `lanes` lanes share a group.
struct GroupShape {
  int64_t groups;  // of a row
  int64_t width;
  int lanes;
};

// Calls body(row, first column of the group, lane, whether the group exists). All lanes of a warp
// make each call.
template <typename Body>
SATRAP_DEVICE void ForEachGroupOf(const GroupShape& shape, int64_t rows, Body body) {
  ForEachRow(rows * shape.groups, shape.lanes, [&](int64_t n, int lane, bool exists) {
    body(n / shape.groups, n % shape.groups * shape.width, lane, exists);
  });
}

// The sum of value(column) over the group, returned to all of its lanes; 0 if the group does not
// exist.
template <typename T, typename Value>
SATRAP_DEVICE T SumOfGroup(const GroupShape& shape, int64_t first, int lane, bool exists,
                           Value value) {
  T sum = 0;
  for (int64_t k = lane; exists && k < shape.width; k += shape.lanes) sum += value(first + k);
  return WarpSum(sum, shape.lanes);
}

SATRAP_KERNEL void SoftmaxKernel(GroupShape shape, ConstValues x, Values y) {
  ForEachGroupOf(shape, y.rows, [&](int64_t r, int64_t first, int lane, bool exists) {
    float largest = exists ? LoadValue(x, r, first) : 0;
    for (int64_t k = lane; exists && k < shape.width; k += shape.lanes) {
      largest = Max(largest, LoadValue(x, r, first + k));
    }
    largest = WarpMax(largest, shape.lanes);
    // Max ignores a NaN, but NaN - largest is NaN, so the sum is NaN anyway.
    const float sum = SumOfGroup<float>(
        shape, first, lane, exists, [&](int64_t c) { return Exp(LoadValue(x, r, c) - largest); });
    for (int64_t k = lane; exists && k < shape.width; k += shape.lanes) {
      StoreValue(y, r, first + k, Exp(LoadValue(x, r, first + k) - largest) / sum);
    }
  });
}

SATRAP_KERNEL void SoftmaxGradKernel(GroupShape shape, ConstValues y, ConstValues dy, Values dx,
                                     bool add) {
  ForEachGroupOf(shape, y.rows, [&](int64_t r, int64_t first, int lane, bool exists) {
    const float sum = SumOfGroup<float>(shape, first, lane, exists, [&](int64_t c) {
      return LoadValue(dy, r, c) * LoadValue(y, r, c);
    });
    for (int64_t k = lane; exists && k < shape.width; k += shape.lanes) {
      const int64_t c = first + k;
      PutValue(dx, r, c, LoadValue(y, r, c) * (LoadValue(dy, r, c) - sum), add);
    }
  });
}

SATRAP_KERNEL void NormalizeKernel(GroupShape shape, bool centred, ConstValues x, float epsilon,
                                   Values y, Values inverse) {
  const auto count = static_cast<double>(shape.width);
  ForEachGroupOf(shape, y.rows, [&](int64_t r, int64_t first, int lane, bool exists) {
    double mean = 0;
    if (centred) {
      mean = SumOfGroup<double>(shape, first, lane, exists,
                                [&](int64_t c) { return LoadValue(x, r, c); }) /
             count;
    }
    const double squares = SumOfGroup<double>(shape, first, lane, exists, [&](int64_t c) {
      const double difference = LoadValue(x, r, c) - mean;
      return difference * difference;
    });
    if (!exists) return;
    const double factor = 1 / Sqrt((centred ? squares / count : squares) + epsilon);
    for (int64_t k = lane; k < shape.width; k += shape.lanes) {
      StoreValue(y, r, first + k, static_cast<float>((LoadValue(x, r, first + k) - mean) * factor));
    }
    if (lane == 0) StoreValue(inverse, r, first / shape.width, static_cast<float>(factor));
  });
}

SATRAP_KERNEL void NormalizeGradKernel(GroupShape shape, bool centred, ConstValues y,
                                       ConstValues inverse, ConstValues dy, Values dx, bool add) {
  const auto count = static_cast<float>(shape.width);
  ForEachGroupOf(shape, y.rows, [&](int64_t r, int64_t first, int lane, bool exists) {
    float slope = SumOfGroup<float>(shape, first, lane, exists, [&](int64_t c) {
      return LoadValue(dy, r, c) * LoadValue(y, r, c);
    });
    float shift = 0;
    if (centred) {
      slope /= count;
      shift = SumOfGroup<float>(shape, first, lane, exists,
                                [&](int64_t c) { return LoadValue(dy, r, c); }) /
              count;
    }
    if (!exists) return;
    const float factor = LoadValue(inverse, r, first / shape.width);
    for (int64_t k = lane; k < shape.width; k += shape.lanes) {
      const int64_t c = first + k;
      PutValue(dx, r, c, factor * (LoadValue(dy, r, c) - shift - LoadValue(y, r, c) * slope), add);
    }
  });
}

GroupShape ShapeOfGroups(int64_t cols, int64_t width) {
  return {cols / width, width, LanesOf(width)};
}

Dim3 GroupGrid(int64_t rows, const GroupShape& shape) {
  return RowGrid(rows * shape.groups, shape.lanes);
}

}  // namespace

void SoftmaxGroups(DeviceStream* stream, ConstValues x, int64_t width, Values y) {
  if (y.rows == 0 || y.cols == 0) return;
  const GroupShape shape = ShapeOfGroups(y.cols, width);
  Launch<SoftmaxKernel>(stream, GroupGrid(y.rows, shape), kRowBlock, 0, shape, x, y);
}

void SoftmaxGroupsGrad(DeviceStream* stream, ConstValues y, ConstValues dy, int64_t width,
                       Values dx, bool add) {
  if (y.rows == 0 || y.cols == 0) return;
  const GroupShape shape = ShapeOfGroups(y.cols, width);
  Launch<SoftmaxGradKernel>(stream, GroupGrid(y.rows, shape), kRowBlock, 0, shape, y, dy, dx, add);
}

void NormalizeGroups(DeviceStream* stream, bool centred, ConstValues x, int64_t width,
                     float epsilon, Values y, Values inverse) {
  if (y.rows == 0 || y.cols == 0) return;
  const GroupShape shape = ShapeOfGroups(y.cols, width);
  Launch<NormalizeKernel>(stream, GroupGrid(y.rows, shape), kRowBlock, 0, shape, centred, x,
                          epsilon, y, inverse);
}

void NormalizeGroupsGrad(DeviceStream* stream, bool centred, ConstValues y, ConstValues inverse,
                         ConstValues dy, int64_t width, Values dx, bool add) {
  if (y.rows == 0 || y.cols == 0) return;
  const GroupShape shape = ShapeOfGroups(y.cols, width);
  Launch<NormalizeGradKernel>(stream, GroupGrid(y.rows, shape), kRowBlock, 0, shape, centred, y,
                              inverse, dy, dx, add);
}

}  // namespace satrap
