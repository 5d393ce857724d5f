// Computes the gradients of a table's unique rows from the gradients of the network's inputs. This
// is the transpose of gather_pool.h. Threads work by row instead of by sample, so that no two
// threads add to the same value, and the list of each row's ids gives the order of each sum.
//
// The ids of all features of the table are numbered one after another, as in RowInverse
// (nn_worker/backend/row_exchange_args.h). If every feature has one id in each sample and no
// weights, the feature and sample of an id follow from its number; otherwise LocateIds first finds
// its feature, sample and position. Then ScatterRows adds up the gradients of the ids of each row.

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
};

// Sets places[n] to the place of id n, for all ids.   features: [num_features]
void LocateIds(DeviceStream* stream, const ScatterFeature* features, int num_features,
               int64_t samples, IdPlace* places);

// The columns of the rows are divided into spans, so that a feature has a gradient for all columns
// of a span or for none. Entries of the next two types describe the spans.

// Up to 4 columns of a span. The groups of a list together cover all columns of the rows.
struct ScatterGroup {
  int32_t column;
  int32_t count;  // 1 to 4
  int32_t span;
  int32_t offset;  // of the first column in its span
};

// The gradient that one feature has for the columns of a span.
struct ScatterSource {
  const void* gradient;     // [samples, max_length]; where the span begins; null: none
  int32_t stride;           // values from one sample to the next
  int32_t position_stride;  // and from one position to the next
  ElementType type;
  int32_t unused;  // 0: lists are compared byte by byte
};

// Rows with more ids than this are summed in pieces.
inline constexpr int64_t kIdsOfPiece = 256;

// The number of rows that the sums of pieces need, whatever rows the ids belong to. A row has
// PieceColumns(columns) values. The pieces also need this many row numbers.
constexpr int64_t PieceRows(int64_t num_ids) {
  return num_ids > kIdsOfPiece ? 2 * (num_ids / kIdsOfPiece) + 2 : 0;
}
constexpr int64_t PieceColumns(int64_t cols) { return (cols + 3) / 4 * 4; }

struct ScatterArgs {
  const uint32_t* starts;  // [num_rows + 1], never decreasing
  const uint32_t* ids;     // row r has ids [starts[r], starts[r + 1]) of this list, added in order
  const IdPlace* places;   // of LocateIds; null: each feature has one id a sample, of weight 1
  uint32_t samples;
  uint32_t num_ids;
  const ScatterGroup* groups;    // [num_groups]
  const ScatterSource* sources;  // [features, num_spans]
  int32_t num_groups;
  int32_t num_spans;
  ElementType type;      // of all sources; not read if `mixed`
  bool mixed;            // sources have several types
  float* pieces;         // [PieceRows(num_ids), PieceColumns(columns)]
  uint32_t* large_rows;  // [PieceRows(num_ids)]
};

// gradients[r, c] = the sum of coefficient * gradient, in f32, over the ids of row r whose feature
// has a gradient for column c; 0 where there is no such id.
//
// Order: if a row has at most 256 ids, they are summed in the order of the list. More ids are
// summed in pieces of 256; then the sums of the pieces are summed in pieces of 256 sums, and so on.
// The order depends only on the number of the row's ids. Gradients need no alignment beyond that of
// a value. If they have 16 bits, the kernel also reads, and drops, up to 7 values before and after
// them. All of these lie within the matrix, or within the aligned 8 bytes in which the matrix
// begins.
void ScatterRows(DeviceStream* stream, const ScatterArgs& args, Matrix<float> gradients);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_DEVICE_KERNELS_SCATTER_ROWS_H_
