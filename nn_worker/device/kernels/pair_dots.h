// The dot products of pairs of vectors of a sample, and their gradients.
//
//   y[i, t] = sum over d of xs[a_t][i, a_column_t + d] * xs[b_t][i, b_column_t + d]
//
// in f32 in the order of d. The gradient of a vector is the sum over its terms, in their order, of
// dy[i, t] times the other vector; it is summed in f32 and rounded once. So the bits of a row
// depend on its values alone.

#ifndef SATRAP_NN_WORKER_DEVICE_KERNELS_PAIR_DOTS_H_
#define SATRAP_NN_WORKER_DEVICE_KERNELS_PAIR_DOTS_H_

#include <cstdint>

#include "nn_worker/device/device_stream.h"
#include "nn_worker/device/kernels/values.h"

namespace satrap {

// One product: the numbers of two inputs, and the columns at which the vectors begin. Lists lie in
// device memory.
struct DotTerm {
  int32_t a, a_column;
  int32_t b, b_column;
};

// y[i, t] for the terms of a list.
//   inputs: any number in device memory   terms: [y.cols] in device memory   y: (n, terms)
void PairDots(DeviceStream* stream, const ConstValues* inputs, const DotTerm* terms, int64_t dim,
              Values y);

// Columns [column, column + width) of a gradient, to which the same terms add: the factors
// [first, first + count) of a list. Pieces of one launch do not overlap.
struct DotGradPiece {
  Values dx;
  int32_t column, width;
  int32_t first, count;
  int64_t add;  // 1: += instead of =
};
// What dy[i, term] is multiplied by: the columns of an input from `column` on.
struct DotFactor {
  int32_t term;
  int32_t input, column;
};

// Writes the columns of all pieces; those without factors get 0 unless they are added to.
//   pieces: [num_pieces] in device memory   `max_width`: of any piece   dy: (n, terms)
void PairDotsGrad(DeviceStream* stream, const ConstValues* inputs, const DotGradPiece* pieces,
                  int num_pieces, int64_t max_width, const DotFactor* factors, ConstValues dy);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_DEVICE_KERNELS_PAIR_DOTS_H_
