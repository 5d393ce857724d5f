// Loads groups of 4 neighbouring values that may begin at any value, in at most two accesses. The
// accesses begin at multiples of 4 values, so they also read up to 7 neighbours, which are dropped.
// One call starts a load, and another call returns the values. Between the calls a thread can start
// further loads, so that several are under way at the same time. For kernel sources.

#ifndef SATRAP_NN_WORKER_DEVICE_KERNELS_LOADED_GROUP_H_
#define SATRAP_NN_WORKER_DEVICE_KERNELS_LOADED_GROUP_H_

#include <cstdint>

#include "nn_worker/device/kernel.h"
#include "nn_worker/device/kernels/elementwise.h"
#include "nn_worker/device/vec.h"

namespace satrap {

// For a matrix whose rows have at least one value: if a group begins more than this many rows
// before the end, all of its neighbours are within the matrix.
inline constexpr int64_t kRowsBeforeEnd = 8;

// A group of either 16-bit type is one integer: if a load had to be unpacked into values, a thread
// would wait for it.
template <typename T>
struct LoadedGroup {
  static_assert(sizeof(T) == sizeof(uint16_t));
  uint64_t low, high;  // the values, from the multiple of 4 at or before the first
  uint32_t shift;      // how many of them come before the first
};
template <>
struct LoadedGroup<float> {
  Group low, high;
  uint32_t shift;
};

// The parts of StartLoad and ValuesOf that differ between the types.
namespace loaded_group {

SATRAP_DEVICE inline void LoadFour(const float* p, Group* four) { *four = LoadVec<kGroup>(p); }
template <typename T>
SATRAP_DEVICE void LoadFour(const T* p, uint64_t* four) {
  *four = LoadVec<1>(reinterpret_cast<const uint64_t*>(p)).lane[0];
}
SATRAP_DEVICE inline void SetLane(int i, float value, Group* four) { four->lane[i] = value; }
template <typename T>
SATRAP_DEVICE void SetLane(int i, T value, uint64_t* four) {
  *four |= static_cast<uint64_t>(value.bits) << 16 * i;
}

}  // namespace loaded_group

// Starts to load min(count, 4) values at p. REQUIRES: count > 0; memory is allocated from the
// multiple of 4 values at or before p and, if `inside`, up to p + 8
template <typename T>
SATRAP_DEVICE LoadedGroup<T> StartLoad(const T* p, int32_t count, bool inside) {
  LoadedGroup<T> group = {};
  if (inside) {
    group.shift = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(p) / sizeof(T)) % kGroup;
    const T* const first = p - group.shift;
    loaded_group::LoadFour(first, &group.low);
    const int32_t wanted = count < kGroup ? count : kGroup;
    if (static_cast<int32_t>(group.shift) + wanted > kGroup) {
      loaded_group::LoadFour(first + kGroup, &group.high);
    }
  } else {
    for (int i = 0; i < kGroup; ++i) {
      if (i < count) loaded_group::SetLane(i, p[i], &group.low);
    }
  }
  return group;
}

// The values. Only the first `count` may be used.
template <typename T>
SATRAP_DEVICE Group ValuesOf(const LoadedGroup<T>& loaded) {
  uint64_t bits = loaded.low;
  if (loaded.shift != 0) {
    bits = bits >> 16 * loaded.shift | loaded.high << (64 - 16 * loaded.shift);
  }
  Group group;
  for (int i = 0; i < kGroup; ++i) {
    group.lane[i] = ToFloat(T{static_cast<uint16_t>(bits >> 16 * i)});
  }
  return group;
}
template <>
SATRAP_DEVICE inline Group ValuesOf(const LoadedGroup<float>& loaded) {
  float values[2 * kGroup];
  for (int i = 0; i < kGroup; ++i) {
    values[i] = loaded.low.lane[i];
    values[kGroup + i] = loaded.high.lane[i];
  }
  // Shifts the values by one and then by two places, because registers cannot be indexed.
  for (int i = 0; i < 2 * kGroup - 1; ++i) {
    if ((loaded.shift & 1) != 0) values[i] = values[i + 1];
  }
  Group group;
  for (int i = 0; i < kGroup; ++i) {
    group.lane[i] = (loaded.shift & 2) != 0 ? values[i + 2] : values[i];
  }
  return group;
}

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_DEVICE_KERNELS_LOADED_GROUP_H_
