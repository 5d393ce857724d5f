// A chunk is 16 bytes of a row, the widest access: 4 values of f32, or 8 of a 16-bit type. For
// kernel sources.

#ifndef SATRAP_NN_WORKER_DEVICE_KERNELS_CHUNK_H_
#define SATRAP_NN_WORKER_DEVICE_KERNELS_CHUNK_H_

#include <cstdint>

#include "nn_worker/device/kernel.h"
#include "nn_worker/device/vec.h"

namespace satrap {

inline constexpr int kChunkBytes = 16;

// 16-bit values stay in pairs until they are used, because a card takes one instruction to make an
// f32 of half a word. If kWords is less than 4, this is a part of a chunk, which needs fewer
// registers.
template <typename T, int kWords = 4>
struct Chunk {
  static_assert(sizeof(T) == sizeof(uint16_t));
  static constexpr int kVectorLanes = 2 * kWords;
  Vec<uint32_t, kWords> words;

  SATRAP_DEVICE float Value(int lane) const {
    const uint32_t word = words.lane[lane / 2];
    return ToFloat(T{static_cast<uint16_t>(lane % 2 == 0 ? word : word >> 16)});
  }
  // REQUIRES: the lane is 0
  SATRAP_DEVICE void Set(int lane, T value) {
    words.lane[lane / 2] |= static_cast<uint32_t>(value.bits) << (lane % 2 * 16);
  }
  static SATRAP_DEVICE Chunk Load(const void* p) {
    return {LoadVec<kWords>(static_cast<const uint32_t*>(p))};
  }
  SATRAP_DEVICE void Store(void* p) const { StoreVec(static_cast<uint32_t*>(p), words); }
};
template <>
struct Chunk<float, 4> {
  static constexpr int kVectorLanes = 4;
  Vec<float, 4> values;

  SATRAP_DEVICE float Value(int lane) const { return values.lane[lane]; }
  SATRAP_DEVICE void Set(int lane, float value) { values.lane[lane] = value; }
  static SATRAP_DEVICE Chunk Load(const void* p) {
    return {LoadVec<4>(static_cast<const float*>(p))};
  }
  SATRAP_DEVICE void Store(void* p) const { StoreVec(static_cast<float*>(p), values); }
};

SATRAP_DEVICE inline bool IsChunk(const void* p) {
  return reinterpret_cast<uintptr_t>(p) % kChunkBytes == 0;
}

// The values of a vector at p, where the vector has `left` more values. Lanes beyond these get 0.
template <typename T>
SATRAP_DEVICE Chunk<T> LoadChunk(const T* p, int64_t left) {
  if (left >= Chunk<T>::kVectorLanes && IsChunk(p)) return Chunk<T>::Load(p);
  Chunk<T> chunk = {};
  for (int i = 0; i < Chunk<T>::kVectorLanes; ++i) {
    if (i < left) chunk.Set(i, p[i]);
  }
  return chunk;
}

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_DEVICE_KERNELS_CHUNK_H_
