// Divides the elements of matrices among the threads of a kernel. A thread handles groups of N
// neighbouring elements of a row, and loads or stores each group in one access. For kernel sources.

#ifndef SATRAP_NN_WORKER_DEVICE_KERNELS_ELEMENTWISE_H_
#define SATRAP_NN_WORKER_DEVICE_KERNELS_ELEMENTWISE_H_

#include <cstdint>

#include "nn_worker/device/kernel.h"
#include "nn_worker/device/kernels/matrix.h"
#include "nn_worker/device/vec.h"

namespace satrap {

// Several times as many blocks as the largest card runs at the same time. If there are more groups
// than threads in these blocks, a thread handles several groups.
inline constexpr int64_t kMaxElementwiseBlocks = 4096;
inline constexpr int64_t kElementwiseThreads = 256;

struct ElementwiseShape {
  Dim3 grid, block;
};

// The launch for ForEachGroup over `rows` x `groups`. REQUIRES: both > 0, because no card runs an
// empty grid
inline ElementwiseShape ShapeOf(int64_t rows, int64_t groups,
                                int64_t max_blocks = kMaxElementwiseBlocks) {
  int64_t x = 1;
  while (x < groups && x < kElementwiseThreads) x *= 2;
  const int64_t y = kElementwiseThreads / x;
  int64_t grid_x = (groups + x - 1) / x, grid_y = (rows + y - 1) / y;
  if (grid_x > max_blocks) grid_x = max_blocks;
  const int64_t max_y = max_blocks / grid_x;
  if (grid_y > max_y) grid_y = max_y;
  return {{static_cast<uint32_t>(grid_x), static_cast<uint32_t>(grid_y)},
          {static_cast<uint32_t>(x), static_cast<uint32_t>(y)}};
}

// Calls body(row, group) once for each group, in any thread of the grid.
template <typename Body>
SATRAP_DEVICE void ForEachGroup(int64_t rows, int64_t groups, Body body) {
  const Dim3 block = BlockIndex(), thread = ThreadIndex(), size = BlockSize(), grid = GridSize();
  const int64_t rows_at_once = static_cast<int64_t>(grid.y) * size.y;
  const int64_t groups_at_once = static_cast<int64_t>(grid.x) * size.x;
  for (int64_t r = static_cast<int64_t>(block.y) * size.y + thread.y; r < rows; r += rows_at_once) {
    for (int64_t g = static_cast<int64_t>(block.x) * size.x + thread.x; g < groups;
         g += groups_at_once) {
      body(r, g);
    }
  }
}

// Columns are handled in groups of 4. If rows are aligned, a group is one access. Otherwise its
// values are loaded one by one, but in the same order, so the bits of a sum do not depend on
// alignment.
inline constexpr int kGroup = 4;
using Group = Vec<float, kGroup>;

constexpr int64_t GroupsOf(int64_t cols) { return (cols + kGroup - 1) / kGroup; }

// Loads the values at p. `count`: how many values the row has from p on. Lanes beyond these get 0.
// `aligned`: p is aligned to 4 values.
template <typename T>
SATRAP_DEVICE Group LoadGroup(const T* p, int64_t count, bool aligned) {
  Group group = {};
  if (aligned && count >= kGroup) {
    const auto values = LoadVec<kGroup>(p);
    for (int i = 0; i < kGroup; ++i) group.lane[i] = ToFloat(values.lane[i]);
  } else {
    for (int i = 0; i < kGroup && i < count; ++i) group.lane[i] = ToFloat(p[i]);
  }
  return group;
}

// Writes the first `count` values.
template <typename T>
SATRAP_DEVICE void StoreGroup(T* p, const Group& group, int64_t count, bool aligned) {
  if (aligned && count >= kGroup) {
    Vec<T, kGroup> values;
    for (int i = 0; i < kGroup; ++i) values.lane[i] = FromFloat<T>(group.lane[i]);
    StoreVec(p, values);
  } else {
    for (int i = 0; i < kGroup && i < count; ++i) p[i] = FromFloat<T>(group.lane[i]);
  }
}

// Whether every row begins at a multiple of `bytes`.
template <typename T>
bool RowsAligned(const Matrix<T>& m, int64_t bytes) {
  return reinterpret_cast<uintptr_t>(m.data) % bytes == 0 &&
         (m.rows <= 1 || m.stride * static_cast<int64_t>(sizeof(T)) % bytes == 0);
}

// The same elements as one row, if there are no gaps. Then no group is cut short at the end of a
// row.
template <typename T>
Matrix<T> Flattened(const Matrix<T>& m) {
  if (m.stride != m.cols) return m;
  return {m.data, 1, m.rows * m.cols, m.rows * m.cols};
}

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_DEVICE_KERNELS_ELEMENTWISE_H_
