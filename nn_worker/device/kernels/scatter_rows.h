// Makes the gradients of a table's unique rows from the gradients of the network's inputs. It is
// the transpose of gather_pool.h, by row instead of by sample, so that no two threads add to one
// value and the plan gives the order of each sum.
//
// The ids of all features of the table are numbered one after another, as in RowInverse
// (nn_worker/backend/row_exchange_args.h). LocateIds says once where each of them is; ScatterRows
// then adds up the ids of each row.

#ifndef SATRAP_NN_WORKER_DEVICE_KERNELS_SCATTER_ROWS_H_
#define SATRAP_NN_WORKER_DEVICE_KERNELS_SCATTER_ROWS_H_

#include <cstdint>

#include "nn_worker/device/device_stream.h"
#include "nn_worker/device/kernels/matrix.h"
#include "nn_worker/device/kernels/values.h"
#include "nn_worker/operation/row_pooling.h"

namespace satrap {

// Where an id is.
struct IdPlace {
  uint32_t feature;
  uint32_t sample;
  uint32_t position;  // in the sample's sequence; 0 where the feature is pooled
  float coefficient;  // d value of the sample / d row; 0 where the id has no place in it
};

// All pointers are to device memory.
struct ScatterFeature {
  RowPooling pooling;
  int32_t max_length;       // of kNone
  const uint32_t* offsets;  // [samples + 1]; null: exactly one id a sample
  const float* weights;     // [ids of the feature]; null: all 1
  int64_t first_id;         // the number of its first id
  int32_t first_segment;    // its segments are [first_segment, end_segment) of the list
  int32_t end_segment;
};

// Columns of the table's rows, and the gradient of the samples' values that these make.
struct ScatterSegment {
  int32_t column;
  int32_t width;
  const void* gradient;  // [samples, max_length, width]
  int64_t stride;        // from one sample to the next
  ElementType type;      // of the gradient
  int32_t unused;        // 0: lists are compared byte by byte
};

// places[n] = where id n is, for all ids.   features: [num_features]
void LocateIds(DeviceStream* stream, const ScatterFeature* features, int num_features,
               int64_t samples, IdPlace* places);

struct ScatterArgs {
  const uint32_t* starts;  // [num_rows + 1], never decreasing
  const uint32_t* ids;     // row r has ids [starts[r], starts[r + 1]) of this list, added in order
  const IdPlace* places;   // of LocateIds
  const ScatterFeature* features;
  const ScatterSegment* segments;
  bool aligned;  // every column, width and stride is a multiple of 4, every address one of 4 values
};

// gradients[r, c] = sum over the ids of row r, and the segments of their features that hold column
// c, of coefficient * gradient, in f32; 0 in columns and rows that nothing reads. One thread sums
// each group of columns of a row, so a row with very many ids takes long.
void ScatterRows(DeviceStream* stream, const ScatterArgs& args, Matrix<float> gradients);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_DEVICE_KERNELS_SCATTER_ROWS_H_
