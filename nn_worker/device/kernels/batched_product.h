// Products of the small matrices of each sample, for attention and for crossings of fields:
//
//   Y_m = scale * A_m B_m (with `add`, Y_m += scale * A_m B_m), for each sample and each m < count
//
// Each value is a sum in f32 in the order of the common dimension, scaled and rounded once. So the
// bits of a sample depend only on its matrices. If the matrices have at least 8 rows and columns
// and fit into shared memory, a block reads the matrices of some samples once, and each of its
// threads computes 4 x 4 values. Otherwise a thread computes 4 neighbouring values of a row of Y
// and reads what it needs. The choice depends on the shapes and strides of the matrices alone.

#ifndef SATRAP_NN_WORKER_DEVICE_KERNELS_BATCHED_PRODUCT_H_
#define SATRAP_NN_WORKER_DEVICE_KERNELS_BATCHED_PRODUCT_H_

#include <cstdint>

#include "nn_worker/device/device_stream.h"
#include "nn_worker/device/kernels/values.h"

namespace satrap {

// Element (i, j) of matrix m of a sample is value m * step + i * row_stride + j * col_stride of its
// row. A transposed matrix has the two strides swapped.
struct RowMatrices {
  ConstValues values;
  int64_t step;
  int64_t row_stride;
  int64_t col_stride;
};

struct BatchedProductArgs {
  RowMatrices a;     // (rows, inner)
  RowMatrices b;     // (inner, cols)
  Values y;          // (samples, any): what lies between the matrices stays
  int64_t y_step;    // from one matrix of a sample to the next
  int64_t y_stride;  // from one row of a matrix to the next
  int64_t rows, cols, inner;
  int64_t count;  // matrices of a sample
  float scale;
  bool add;
};

// y does not overlap a or b.
void BatchedProduct(DeviceStream* stream, const BatchedProductArgs& args);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_DEVICE_KERNELS_BATCHED_PRODUCT_H_
