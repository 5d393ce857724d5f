// Loads and stores runs of neighbouring values for kernels that sum up columns (column_tiles.h). If
// all views have one type and rows are aligned, an access has 16 bytes. For kernel sources.

#ifndef SATRAP_NN_WORKER_DEVICE_KERNELS_COLUMN_ACCESS_H_
#define SATRAP_NN_WORKER_DEVICE_KERNELS_COLUMN_ACCESS_H_

#include <bit>
#include <cstdint>

#include "nn_worker/device/float16.h"
#include "nn_worker/device/kernel.h"
#include "nn_worker/device/kernels/elementwise.h"
#include "nn_worker/device/kernels/value_access.h"
#include "nn_worker/device/kernels/values.h"
#include "nn_worker/device/vec.h"

namespace satrap {

// How a thread accesses values if all views have the type T. It loads runs of kVectorLanes
// neighbours, and loads the runs of kRows rows before it uses the first. A run is kept as 16 bytes
// until its values are used, so that many runs fit into registers.
template <typename T>
struct OneType {
  using Run = Vec<uint32_t, 4>;
  static constexpr int kVectorLanes = kVecLanes<T>;
  static constexpr int kRows = kVectorLanes / 2;

  static SATRAP_DEVICE float At(const Run& run, int i) {
    if constexpr (sizeof(T) == sizeof(uint32_t)) {
      return std::bit_cast<float>(run.lane[i]);
    } else {
      const uint32_t pair = run.lane[i / 2];
      return ToFloat(T{static_cast<uint16_t>(i % 2 == 0 ? pair : pair >> 16)});
    }
  }
  // The run of a row that begins at column `col`. If `whole`, the run is aligned and within the
  // row; otherwise lanes beyond the row get 0.
  static SATRAP_DEVICE Run Load(const ConstValues& x, int64_t row, int64_t col, bool whole) {
    const T* const p = static_cast<const T*>(x.data) + row * x.stride + col;
    if (whole) return std::bit_cast<Run>(LoadVec<kVectorLanes>(p));
    Vec<T, kVectorLanes> values = {};
    for (int i = 0; i < kVectorLanes; ++i) {
      if (col + i < x.cols) values.lane[i] = p[i];
    }
    return std::bit_cast<Run>(values);
  }
  static SATRAP_DEVICE void Store(const Values& y, int64_t row, int64_t col, const float* values,
                                  bool whole) {
    T* const p = static_cast<T*>(y.data) + row * y.stride + col;
    Vec<T, kVectorLanes> rounded;
    for (int i = 0; i < kVectorLanes; ++i) rounded.lane[i] = FromFloat<T>(values[i]);
    if (whole) return StoreVec(p, rounded);
    for (int i = 0; i < kVectorLanes; ++i) {
      if (col + i < y.cols) p[i] = rounded.lane[i];
    }
  }
  static SATRAP_DEVICE float Rounded(const Values&, float value) {
    return ToFloat(FromFloat<T>(value));
  }
};

// Like OneType, but for views of several types.
struct AnyTypes {
  using Run = Group;
  static constexpr int kVectorLanes = kGroup;
  static constexpr int kRows = 2;

  static SATRAP_DEVICE float At(const Run& run, int i) { return run.lane[i]; }
  static SATRAP_DEVICE Run Load(const ConstValues& x, int64_t row, int64_t col, bool whole) {
    const int64_t at = row * x.stride + col;
    if (whole) return LoadGroup(x.data, x.type, at, kVectorLanes, /*aligned=*/true);
    Run run = {};
    for (int i = 0; i < kVectorLanes; ++i) {
      if (col + i < x.cols) run.lane[i] = LoadValue(x.data, x.type, at + i);
    }
    return run;
  }
  static SATRAP_DEVICE void Store(const Values& y, int64_t row, int64_t col, const float* values,
                                  bool whole) {
    if (whole) {
      const Group group = {{values[0], values[1], values[2], values[3]}};
      return StoreGroup(y.data, y.type, row * y.stride + col, group, kVectorLanes,
                        /*aligned=*/true);
    }
    for (int i = 0; i < kVectorLanes; ++i) {
      if (col + i < y.cols) StoreValue(y, row, col + i, values[i]);
    }
  }
  static SATRAP_DEVICE float Rounded(const Values& y, float value) {
    if (y.type == ElementType::kF32) return value;
    if (y.type == ElementType::kF16) return ToFloat(FromFloat<Half>(value));
    return ToFloat(FromFloat<Bf16>(value));
  }
};

// Calls body(access) with the OneType of `type`.
template <typename Body>
void WithType(ElementType type, Body body) {
  if (type == ElementType::kF32) return body(OneType<float>());
  if (type == ElementType::kF16) return body(OneType<Half>());
  return body(OneType<Bf16>());
}
// Calls body(access) with the OneType of `type` if all views have this type, and otherwise with
// AnyTypes.
template <typename Body>
void WithAccess(ElementType type, bool one_type, Body body) {
  if (!one_type) return body(AnyTypes());
  WithType(type, body);
}

// Whether each run of a view can be loaded in one access.
inline bool RunsAligned(const ConstValues& x, int64_t lanes) {
  const int64_t bytes = lanes * ElementBytes(x.type);
  return reinterpret_cast<uintptr_t>(x.data) % static_cast<uintptr_t>(bytes) == 0 &&
         (x.rows <= 1 || x.stride % lanes == 0);
}

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_DEVICE_KERNELS_COLUMN_ACCESS_H_
