// Computes the inputs of a network from rows of tables and the indices of its features, in one
// launch for all features of a part. The formulas are those of common/batch/pooling.h.

#ifndef SATRAP_NN_WORKER_DEVICE_KERNELS_GATHER_POOL_H_
#define SATRAP_NN_WORKER_DEVICE_KERNELS_GATHER_POOL_H_

#include <cstdint>

#include "nn_worker/device/device_stream.h"
#include "nn_worker/device/kernels/values.h"
#include "nn_worker/operation/row_pooling.h"

namespace satrap {

// One segment of one feature: columns of the rows of its table. All pointers are to device memory.
struct GatherTarget {
  const float* table;       // where the segment begins in row 0
  int64_t table_stride;     // from one row to the next
  int32_t width;            // values
  int32_t max_length;       // of kNone; 1 otherwise
  RowPooling pooling;       // kSum if each sample has one row
  ElementType type;         // of `out`
  bool aligned;             // the segments of all rows and samples begin at multiples of 4 values
  const uint32_t* rows;     // [num_ids], numbers of rows; null: sample s gets row s
  const uint32_t* offsets;  // [samples + 1]; null: exactly one id a sample
  const float* weights;     // [num_ids]; null: all 1
  void* out;                // [samples, max_length, width]
  int64_t out_stride;       // from one sample to the next
  float* lengths;           // [samples]: min(ids of the sample, max_length); null: not wanted
  int64_t lengths_stride;
};

// out[s, :] = the pooled rows of sample s, summed in f32 in the order of its ids; zeros where the
// divisor is 0. With kNone, out[s, p, :] = the row of the p-th id times its weight; zeros after the
// last id. REQUIRES: rows and indices have been checked (CheckRowIndices)
//   targets: [num_targets] in device memory
void GatherAndPool(DeviceStream* stream, const GatherTarget* targets, int num_targets,
                   int64_t samples);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_DEVICE_KERNELS_GATHER_POOL_H_
