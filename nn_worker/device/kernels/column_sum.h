// The sums of a matrix's columns, by themselves or in one pass with the gradient of an activation.
//
// Order. ColumnTiles says how a matrix is divided: a block sums up the rows of one piece for the
// columns of one tile. A column's rows in a piece belong to `lanes` lanes in turn. A lane adds its
// rows in order, and the sums of the lanes are added by a tree. The sums of the pieces are added by
// at most kPartialLanes lanes in the same way. All sums are f32. So the bits depend only on the
// values and on the shape, not on types or alignment.

#ifndef SATRAP_NN_WORKER_DEVICE_KERNELS_COLUMN_SUM_H_
#define SATRAP_NN_WORKER_DEVICE_KERNELS_COLUMN_SUM_H_

#include <cstdint>

#include "nn_worker/device/device_stream.h"
#include "nn_worker/device/kernels/values.h"
#include "nn_worker/operation/operation_kinds.h"

namespace satrap {

// The way in which a matrix is divided among the blocks and threads that sum up its columns. A
// block has `lanes` rows of `across` threads, and each thread sums up kOctet columns.
struct ColumnTiles {
  static constexpr int32_t kThreads = 256;    // of a block, at most
  static constexpr int32_t kOctet = 8;        // 16 bytes of 16-bit values
  static constexpr int32_t kMostAcross = 64;  // threads
  static constexpr int32_t kRowsOfLane = 16;  // of a piece

  int64_t cols = 0;
  int64_t tiles = 1;
  int32_t across = 1;
  int32_t lanes = kThreads;

  constexpr ColumnTiles() = default;
  explicit constexpr ColumnTiles(int64_t num_cols) : cols(num_cols) {
    const int64_t octets = cols > 0 ? (cols + kOctet - 1) / kOctet : 1;
    tiles = (octets + kMostAcross - 1) / kMostAcross;
    across = static_cast<int32_t>((octets + tiles - 1) / tiles);
    lanes = kThreads / across;
  }
  constexpr int64_t piece_rows() const { return int64_t{kRowsOfLane} * lanes; }
  constexpr int64_t Pieces(int64_t rows) const { return (rows + piece_rows() - 1) / piece_rows(); }
};

// The maximum number of lanes that add up the sums of pieces.
inline constexpr int kPartialLanes = 128;

// The number of values of `partials` that the functions below need.
inline int64_t ColumnSumPartials(int64_t rows, int64_t cols) {
  return ColumnTiles(cols).Pieces(rows) * cols;
}

// sums[c] = sum over i of x[i, c]; 0 without rows.
//   partials: [ColumnSumPartials(x.rows, x.cols)], overwritten   sums: [x.cols]
void ColumnSum(DeviceStream* stream, ConstValues x, float* partials, float* sums);

// dx = dy f'(x), from y = f(x), and sums[c] = the sum of column c of the rounded dx. The bits are
// the same as those of ActivateGrad and ColumnSum, but dy and y are read once, and dx is not read
// again. With kLinear, y is not read. dx may be dy.
//   y, dy, dx: (rows, cols)   partials, sums: as for ColumnSum
void ActivateGradColumnSum(DeviceStream* stream, Activation activation, ConstValues y,
                           ConstValues dy, Values dx, float* partials, float* sums);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_DEVICE_KERNELS_COLUMN_SUM_H_
