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
#include "nn_worker/device/vec.h"

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

// A group as it is in memory. A thread that loads several raw groups waits for all of them at once,
// whereas LoadGroup waits for each group in order to convert it.
struct RawGroup {
  Group wide;                // of f32
  Vec<Bf16, kGroup> narrow;  // of 16 bits, of either type
};
SATRAP_DEVICE inline RawGroup LoadRawGroup(const ConstValues& x, int64_t row, int64_t col,
                                           int64_t count) {
  const int64_t at = row * x.stride + col;
  RawGroup raw = {};
  if (x.type == ElementType::kF32) {
    raw.wide = LoadGroup(static_cast<const float*>(x.data) + at, count, x.aligned != 0);
    return raw;
  }
  const auto* const p = static_cast<const Bf16*>(x.data) + at;
  if (x.aligned != 0 && count >= kGroup) {
    raw.narrow = LoadVec<kGroup>(p);
  } else {
    for (int i = 0; i < kGroup && i < count; ++i) raw.narrow.lane[i] = p[i];
  }
  return raw;
}
SATRAP_DEVICE inline Group GroupOf(const RawGroup& raw, ElementType type) {
  if (type == ElementType::kF32) return raw.wide;
  Group group;
  for (int i = 0; i < kGroup; ++i) {
    const Bf16 value = raw.narrow.lane[i];
    group.lane[i] = type == ElementType::kF16 ? ToFloat(Half{value.bits}) : ToFloat(value);
  }
  return group;
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

// Returns the elements of `x` as a single row if `x` has no gaps, and otherwise `x` itself.
inline ConstValues Flattened(const ConstValues& x) {
  if (x.stride != x.cols) return x;
  return {x.data, 1, x.rows * x.cols, x.rows * x.cols, x.type};
}

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_DEVICE_KERNELS_VALUE_ACCESS_H_
