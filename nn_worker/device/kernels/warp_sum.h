// Sums over the lanes of a warp, always in the same order, and the assignment of rows to lanes. For
// kernel sources.

#ifndef SATRAP_NN_WORKER_DEVICE_KERNELS_WARP_SUM_H_
#define SATRAP_NN_WORKER_DEVICE_KERNELS_WARP_SUM_H_

#include <cstdint>

#include "nn_worker/device/kernel.h"

namespace satrap {

// Returns to every lane the sum over its group of `lanes` neighbouring lanes. REQUIRES: all 32
// lanes of the warp take part; `lanes` is a power of 2, at most 32
template <typename T>
SATRAP_DEVICE T WarpSum(T value, int lanes = kWarpSize) {
  for (int bits = lanes / 2; bits > 0; bits /= 2) value += ShuffleXor(kFullMask, value, bits);
  return value;
}

// Like WarpSum, but returns the largest value. NaNs are ignored if there are numbers.
SATRAP_DEVICE inline float WarpMax(float value, int lanes) {
  for (int bits = lanes / 2; bits > 0; bits /= 2) {
    value = Max(value, ShuffleXor(kFullMask, value, bits));
  }
  return value;
}

inline constexpr int kRowWarps = 8;
inline constexpr int64_t kMaxRowBlocks = 4096;

// Calls body(row, lane of the row, whether the row exists) for `rows` rows of `lanes` lanes each.
// All lanes of a warp make each call together, so that the body may sum over them. The kernel must
// be launched with RowGrid and kRowWarps warps. REQUIRES: `lanes` is a power of 2, at most 32
template <typename Body>
SATRAP_DEVICE void ForEachRow(int64_t rows, int lanes, Body body) {
  const int lane = static_cast<int>(ThreadIndex().x) % kWarpSize;
  const int64_t rows_a_warp = kWarpSize / lanes;
  const int64_t rows_at_once = ThreadsInGrid() / kWarpSize * rows_a_warp;
  for (int64_t first = ThreadInGrid() / kWarpSize * rows_a_warp; first < rows;
       first += rows_at_once) {
    const int64_t row = first + lane / lanes;
    body(row, lane % lanes, row < rows);
  }
}

inline Dim3 RowGrid(int64_t rows, int lanes) {
  const int64_t rows_a_block = kRowWarps * kWarpSize / lanes;
  const int64_t blocks = (rows + rows_a_block - 1) / rows_a_block;
  return {static_cast<uint32_t>(blocks < kMaxRowBlocks ? blocks : kMaxRowBlocks)};
}
inline constexpr Dim3 kRowBlock = {kRowWarps * kWarpSize};

// The number of lanes that share a row of `cols` values: the smallest power of 2 with which no lane
// has more than 4 values, but at most a whole warp. It depends only on `cols`.
inline int LanesOf(int64_t cols) {
  int lanes = 1;
  while (lanes < kWarpSize && 4 * lanes < cols) lanes *= 2;
  return lanes;
}

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_DEVICE_KERNELS_WARP_SUM_H_
