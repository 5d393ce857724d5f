// Computes the inputs of a network from rows of tables and the indices of its features, in one
// launch for all features of a part. The formulas are those of common/batch/pooling.h.

#ifndef SATRAP_NN_WORKER_DEVICE_KERNELS_GATHER_POOL_H_
#define SATRAP_NN_WORKER_DEVICE_KERNELS_GATHER_POOL_H_

#include <cstdint>

#include "nn_worker/device/device_stream.h"
#include "nn_worker/device/kernels/values.h"
#include "nn_worker/operation/row_pooling.h"

namespace satrap {

// All pointers are to device memory.
struct GatherFeature {
  const void* table;     // the first value of row 0
  int64_t table_stride;  // values from one row to the next
  int64_t table_rows;
  ElementType type;         // of the table's values
  float scale;              // by which they are multiplied
  int32_t max_length;       // of kNone; 1 otherwise
  RowPooling pooling;       // kSum if each sample has one row
  const uint32_t* rows;     // [num_ids], numbers of rows; null: sample s gets row s
  const uint32_t* offsets;  // [samples + 1]; null: exactly one id a sample
  const float* weights;     // [num_ids]; null: all 1
  float* lengths;           // [samples]: min(ids of the sample, max_length); null: not wanted
  int64_t lengths_stride;
  int32_t first_segment;  // its segments begin here in the list
  int32_t groups;         // the sum of GroupsOf(width) over its segments
};

// Some columns of the table's rows, and the samples' values that are computed from them.
struct GatherSegment {
  int32_t column;
  int32_t width;
  void* out;           // [samples, max_length, width]
  int64_t out_stride;  // from one sample to the next
  ElementType type;    // of `out`
  int32_t aligned;     // 1: each group of 4 values of `out` can be written in one access
};

// out[s, :] = the pooled rows of sample s, summed in f32 in the order of its ids; zeros where the
// divisor is 0. With kNone, out[s, p, :] = the row of the p-th id times its weight; zeros after the
// last id. Rows need no alignment beyond that of a value. The kernel also reads, and drops, up to 7
// values before and after those of a row. All of them lie within the table, or within the aligned
// 16 bytes in which the table begins. REQUIRES: rows and indices have been checked
// (CheckRowIndices)
//   features: [num_features] in device memory
void GatherAndPool(DeviceStream* stream, const GatherFeature* features, int num_features,
                   const GatherSegment* segments, int64_t samples);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_DEVICE_KERNELS_GATHER_POOL_H_
