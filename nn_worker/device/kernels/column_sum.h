// The sums of a matrix's columns. The rows are divided into pieces of kColumnSumRows. A block sums
// up a piece by a tree, and the sums of the pieces are added in order. So the bits depend only on
// the values and the number of rows.

#ifndef SATRAP_NN_WORKER_DEVICE_KERNELS_COLUMN_SUM_H_
#define SATRAP_NN_WORKER_DEVICE_KERNELS_COLUMN_SUM_H_

#include "nn_worker/device/device_stream.h"
#include "nn_worker/device/kernels/values.h"

namespace satrap {

inline constexpr int64_t kColumnSumRows = 1024;

// The number of values of `partials` that ColumnSum needs.
inline int64_t ColumnSumPartials(int64_t rows, int64_t cols) {
  return (rows + kColumnSumRows - 1) / kColumnSumRows * cols;
}

// sums[c] = sum over i of x[i, c], in f32; 0 without rows.
//   partials: [ColumnSumPartials(x.rows, x.cols)], overwritten   sums: [x.cols]
void ColumnSum(DeviceStream* stream, ConstValues x, float* partials, float* sums);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_DEVICE_KERNELS_COLUMN_SUM_H_
