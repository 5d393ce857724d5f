// The inputs of a network from the unique rows of a table and the indices of its features: one launch
// for all features of a table. The formulas are those of common/batch/pooling.h.

#ifndef SATRAP_NN_WORKER_DEVICE_KERNELS_GATHER_POOL_H_
#define SATRAP_NN_WORKER_DEVICE_KERNELS_GATHER_POOL_H_

#include <cstdint>

#include "nn_worker/backend/row_pooling.h"
#include "nn_worker/device/kernels/matrix.h"
#include "nn_worker/device/stream.h"

namespace satrap {

// One segment of one feature. All pointers are to device memory.
template <typename Out>
struct GatherTarget {
  RowPooling pooling;
  int32_t column;           // of a row of the table, where the segment begins
  int32_t width;            // values
  const uint32_t* rows;     // [num_ids], numbers of rows
  const uint32_t* offsets;  // [samples + 1]; null: exactly one id a sample
  const float* weights;     // [num_ids]; null: all 1
  int32_t max_length;       // of kNone; 1 otherwise
  Out* out;                 // [samples, max_length, width]
  int64_t out_stride;       // from one sample to the next
  float* lengths;           // [samples]: min(ids of the sample, max_length); null: not wanted
  int64_t lengths_stride;
};

// out[s, :] = the pooled rows of sample s, summed in f32 in the order of its ids; zeros where the
// divisor is 0. kNone: out[s, p, :] = the row of the p-th id times its weight; zeros after the last
// id. Out: float, Half or Bf16. Rows and indices were checked (CheckRowIndices).
//   targets: [num_targets] in device memory   table_rows: [num_rows, row_values]
// `aligned`: every column and width, and every stride, is a multiple of 4, and all arrays are aligned
// to 16.
template <typename Out>
void GatherAndPool(Stream* stream, const GatherTarget<Out>* targets, int num_targets,
                   int64_t samples, Matrix<const float> table_rows, bool aligned);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_DEVICE_KERNELS_GATHER_POOL_H_
