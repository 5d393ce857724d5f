// Functions by which kernels load and store Values (values.h): single values, and the groups of 4
// neighbours into which elementwise.h divides rows. In registers all values are f32. For kernel
// sources.

#ifndef SATRAP_NN_WORKER_DEVICE_KERNELS_VALUE_ACCESS_H_
#define SATRAP_NN_WORKER_DEVICE_KERNELS_VALUE_ACCESS_H_

#include <cstdint>

#include "nn_worker/device/float16.h"
#include "nn_worker/device/kernel.h"
#include "nn_worker/device/kernels/elementwise.h"
#include "nn_worker/device/kernels/values.h"

namespace satrap {

// The value at index `at` of an array of `type`. All threads of a block usually take the same
// branch.
SATRAP_DEVICE inline float LoadValue(const void* data, ElementType type, int64_t at) {
  if (type == ElementType::kF32) return static_cast<const float*>(data)[at];
  if (type == ElementType::kF16) return ToFloat(static_cast<const Half*>(data)[at]);
  return ToFloat(static_cast<const Bf16*>(data)[at]);
}
SATRAP_DEVICE inline float LoadValue(const ConstValues& x, int64_t row, int64_t col) {
  return LoadValue(x.data, x.type, row * x.stride + col);
}
SATRAP_DEVICE inline void StoreValue(const Values& y, int64_t row, int64_t col, float value) {
  const int64_t at = row * y.stride + col;
  if (y.type == ElementType::kF32) {
    static_cast<float*>(y.data)[at] = value;
  } else if (y.type == ElementType::kF16) {
    static_cast<Half*>(y.data)[at] = FromFloat<Half>(value);
  } else {
    static_cast<Bf16*>(y.data)[at] = FromFloat<Bf16>(value);
  }
}
// Assigns `value`, or adds it to the value in memory.
SATRAP_DEVICE inline void PutValue(const Values& y, int64_t row, int64_t col, float value,
                                   bool add) {
  StoreValue(y, row, col, add ? LoadValue(y, row, col) + value : value);
}

// The group that begins at index `at` of an array. `count`: how many values the row has from there
// on.
SATRAP_DEVICE inline Group LoadGroup(const void* data, ElementType type, int64_t at, int64_t count,
                                     bool aligned) {
  if (type == ElementType::kF32) {
    return LoadGroup(static_cast<const float*>(data) + at, count, aligned);
  }
  if (type == ElementType::kF16) {
    return LoadGroup(static_cast<const Half*>(data) + at, count, aligned);
  }
  return LoadGroup(static_cast<const Bf16*>(data) + at, count, aligned);
}
SATRAP_DEVICE inline void StoreGroup(void* data, ElementType type, int64_t at, const Group& group,
                                     int64_t count, bool aligned) {
  if (type == ElementType::kF32) {
    StoreGroup(static_cast<float*>(data) + at, group, count, aligned);
  } else if (type == ElementType::kF16) {
    StoreGroup(static_cast<Half*>(data) + at, group, count, aligned);
  } else {
    StoreGroup(static_cast<Bf16*>(data) + at, group, count, aligned);
  }
}

// The group that begins at a column of a row. It ends with the row, or after `count` values.
SATRAP_DEVICE inline Group LoadGroup(const ConstValues& x, int64_t row, int64_t col,
                                     int64_t count) {
  return LoadGroup(x.data, x.type, row * x.stride + col, count, x.aligned != 0);
}
SATRAP_DEVICE inline Group LoadGroup(const ConstValues& x, int64_t row, int64_t col) {
  return LoadGroup(x, row, col, x.cols - col);
}
SATRAP_DEVICE inline void StoreGroup(const Values& y, int64_t row, int64_t col,
                                     const Group& group) {
  StoreGroup(y.data, y.type, row * y.stride + col, group, y.cols - col, y.aligned != 0);
}
SATRAP_DEVICE inline void PutGroup(const Values& y, int64_t row, int64_t col, Group group,
                                   int64_t count, bool add) {
  if (add) {
    const Group before = LoadGroup(y, row, col, count);
    for (int i = 0; i < kGroup; ++i) group.lane[i] += before.lane[i];
  }
  StoreGroup(y.data, y.type, row * y.stride + col, group, count, y.aligned != 0);
}
SATRAP_DEVICE inline void PutGroup(const Values& y, int64_t row, int64_t col, const Group& group,
                                   bool add) {
  PutGroup(y, row, col, group, y.cols - col, add);
}

// The same elements as one row, if there are no gaps.
inline ConstValues Flattened(const ConstValues& x) {
  if (x.stride != x.cols) return x;
  return {x.data, 1, x.rows * x.cols, x.rows * x.cols, x.type};
}

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_DEVICE_KERNELS_VALUE_ACCESS_H_
