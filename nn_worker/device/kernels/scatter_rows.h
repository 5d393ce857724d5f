// Computes the gradients of a table's unique rows from the gradients of the network's inputs. This
// is the transpose of gather_pool.h. Threads work by row instead of by sample, so that no two
// threads add to the same value, and the list of each row's ids gives the order of each sum.
//
// The ids of all features of the table are numbered one after another, as in RowInverse
// (nn_worker/backend/row_exchange_args.h). LocateIds first finds the feature, sample and position
// of each id. Then ScatterRows adds up the gradients of the ids of each row.

#ifndef SATRAP_NN_WORKER_DEVICE_KERNELS_SCATTER_ROWS_H_
#define SATRAP_NN_WORKER_DEVICE_KERNELS_SCATTER_ROWS_H_

#include <cstdint>

#include "nn_worker/device/device_stream.h"
#include "nn_worker/device/kernels/matrix.h"
#include "nn_worker/device/kernels/values.h"
#include "nn_worker/operation/row_pooling.h"

namespace satrap {

// The feature, sample and position to which an id belongs.
struct IdPlace {
  uint32_t feature;
  uint32_t sample;
  uint32_t position;  // in the sample's sequence; 0 where the feature is pooled
  float coefficient;  // d value of the sample / d row; 0 if the id does not contribute
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

// Some columns of the table's rows, and the gradient of the samples' values that were computed from
// them.
struct ScatterSegment {
  int32_t column;
  int32_t width;
  const void* gradient;  // [samples, max_length, width]
  int64_t stride;        // from one sample to the next
  ElementType type;      // of the gradient
  int32_t unused;        // 0: lists are compared byte by byte
};

// Sets places[n] to the place of id n, for all ids.   features: [num_features]
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

// gradients[r, c] = the sum of coefficient * gradient, in f32, over the ids of row r and over those
// segments of their features that contain column c; 0 in columns and rows that no segment reads.
// One thread sums each group of columns of a row, so a row with very many ids takes long.
void ScatterRows(DeviceStream* stream, const ScatterArgs& args, Matrix<float> gradients);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_DEVICE_KERNELS_SCATTER_ROWS_H_
