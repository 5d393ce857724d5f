// The arguments of the operations that exchange values between the rows of a table and the samples
// of a part (Backend::GatherRows, Backend::ScatterGradients).
//
// A feature of a part has `ids`; id j refers to row ids[j] of its table. The ids of sample i are
// [offsets[i], offsets[i + 1]). For the ids j of sample i, with rows r_j and weights w_j, the
// values of the sample are
//
//   kSum     sum_j w_j r_j
//   kMean    sum_j w_j r_j / sum_j w_j
//   kSqrtN   sum_j w_j r_j / sqrt(sum_j w_j^2)
//   kNone    w_j r_j of the p-th id at position p < max_length; zeros after the last
//
// A sample without ids, or with a divisor of 0, gives zeros and contributes no gradient. These are
// the formulas of common/batch/pooling.h.

#ifndef SATRAP_NN_WORKER_BACKEND_ROW_EXCHANGE_ARGS_H_
#define SATRAP_NN_WORKER_BACKEND_ROW_EXCHANGE_ARGS_H_

#include <cstdint>
#include <vector>

#include "nn_worker/backend/tensor.h"
#include "nn_worker/operation/row_pooling.h"

namespace satrap {

// Columns [column, column + width) of a row, and a tensor for the samples' values of these columns.
// The segments of a feature have no column in common.
struct RowSegment {
  int64_t column = 0;
  int64_t width = 0;
  // (samples, width), or with kNone (samples, max_length * width). ScatterGradients reads the
  // gradient from it.
  Tensor values;
};

struct FeatureExchange {
  int64_t samples = 0;
  // (num_rows, row_values), without gaps; F32, or what GathersHalves allows. A scatter does not
  // read it.
  Tensor rows;
  float row_scale = 1;  // a power of two, by which the rows are multiplied; 1 for F32
  // If true, there are no ids: the rows were pooled elsewhere, and sample i gets row i. The fields
  // from `pooling` to `max_length` are not read.
  bool one_row_a_sample = false;
  RowPooling pooling = RowPooling::kSum;
  Tensor ids;              // U32 (1, num_ids), each < num_rows
  Tensor offsets;          // U32 (1, samples + 1), from 0 to num_ids; empty: one id a sample
  Tensor weights;          // (1, num_ids); empty: all 1
  int64_t max_length = 0;  // kNone
  std::vector<RowSegment> segments;
  Tensor lengths;  // kNone, (samples, 1): gets min(ids of the sample, max_length); may be empty
};

// Lists the ids that refer to each row. The ids of all features of a table are numbered one after
// another. The numbers for row r are positions[starts[r]] to positions[starts[r + 1] - 1],
// ascending. InvertIds (row_inverse.h) makes this list. The tensors are empty for a backend that
// does not scatter by row.
struct RowInverse {
  Tensor starts;     // U32 (1, num_rows + 1)
  Tensor positions;  // U32 (1, number of ids)
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_BACKEND_ROW_EXCHANGE_ARGS_H_
