// The gradients of a table's unique rows from the gradients of the network's inputs: the transpose of
// gather_pool.h, by row instead of by sample, so that no two threads add to one value and the order of
// each sum is the plan's.

#ifndef SATRAP_NN_WORKER_DEVICE_KERNELS_SCATTER_ROWS_H_
#define SATRAP_NN_WORKER_DEVICE_KERNELS_SCATTER_ROWS_H_

#include <cstdint>

#include "nn_worker/device/kernels/matrix.h"
#include "nn_worker/device/stream.h"

namespace satrap {

// One occurrence of a row: in a sample of a feature.
struct RowPosition {
  uint32_t feature;
  uint32_t sample;
  uint32_t position;  // in the sample's sequence; 0 where the feature is pooled
  float coefficient;  // d pooled value / d row: the value's weight times the sample's scale
};

// Columns of the table's rows that belong together.
struct ScatterSegment {
  int32_t column;
  int32_t width;
};

// The gradient of one segment of one feature. Null data: it is not wanted and adds nothing.
template <typename In>
struct ScatterSource {
  const In* data;  // [samples, max_length, width]
  int64_t stride;  // from one sample to the next
};

// All pointers are to device memory.
template <typename In>
struct ScatterArgs {
  const uint32_t* starts;  // [num_rows + 1], never decreasing
  const RowPosition*
      positions;  // row r has positions [starts[r], starts[r + 1]), added in this order
  const ScatterSegment* segments;    // [num_segments]
  const ScatterSource<In>* sources;  // [num_segments, num_features]
  int32_t num_segments;
  int32_t num_features;
};

// gradients[r, column + c] = sum over the positions of row r of coefficient *
// source[sample, position, c], in f32. Writes the columns of the segments, zeros included. A row is summed by one thread a column: a row
// with very many positions takes long. In: float, Half or Bf16.
template <typename In>
void ScatterRows(Stream* stream, const ScatterArgs<In>& args, Matrix<float> gradients);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_DEVICE_KERNELS_SCATTER_ROWS_H_
