// The dot products of pairs of vectors of a sample, and their gradients.
//
//   y[i, t] = sum over d of xs[a_t][i, a_column_t + d] * xs[b_t][i, b_column_t + d]
//
// The sum is in f32 in the order of d. The gradient of a vector is the sum over its terms, in their
// order, of dy[i, t] times the other vector; it is summed in f32 and rounded once. So the bits of a
// row depend only on its values.

#ifndef SATRAP_NN_WORKER_DEVICE_KERNELS_PAIR_DOTS_H_
#define SATRAP_NN_WORKER_DEVICE_KERNELS_PAIR_DOTS_H_

#include <cstdint>

#include "nn_worker/device/device_stream.h"
#include "nn_worker/device/kernels/values.h"

namespace satrap {

// One product: the numbers of two inputs, and the columns at which the two vectors begin. Lists of
// terms are in device memory.
struct DotTerm {
  int32_t a, a_column;
  int32_t b, b_column;
};

// Computes y[i, t] for the terms of a list.
//   inputs: any number in device memory   terms: [y.cols] in device memory   y: (n, terms)
void PairDots(DeviceStream* stream, const ConstValues* inputs, const DotTerm* terms, int64_t dim,
              Values y);

// Columns [column, column + width) of a gradient, to all of which the same terms are added: one for
// each of the factors [first, first + count) of a list. Pieces of one launch must not overlap.
struct DotGradPiece {
  Values dx;
  int32_t column, width;
  int32_t first, count;
  int64_t add;  // 1: += instead of =
};
// The factor by which dy[i, term] is multiplied: the columns of an input, starting at `column`.
struct DotFactor {
  int32_t term;
  int32_t input, column;
};

// Writes the columns of all pieces. A piece without factors gets 0, unless its `add` is set: then
// it stays unchanged.
//   pieces: [num_pieces] in device memory   `max_width`: the largest width   dy: (n, terms)
void PairDotsGrad(DeviceStream* stream, const ConstValues* inputs, const DotGradPiece* pieces,
                  int num_pieces, int64_t max_width, const DotFactor* factors, ConstValues dy);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_DEVICE_KERNELS_PAIR_DOTS_H_
