// The dot products of pairs of vectors of a sample, and their gradients.
//
//   y[i, t] = sum over d of xs[a_t][i, a_column_t + d] * xs[b_t][i, b_column_t + d]
//
// The sum is in f32 in the order of d. A vector may be in several pairs t. Its gradient is the sum,
// over these t in their order, of dy[i, t] times the other vector of pair t; it is summed in f32
// and rounded once. So the bits of a row depend only on its values.
//
// Products and gradients have two kernels each. One accepts any terms, and each of its threads
// reads the vectors that it needs. The other is for vectors that are in many terms: a block copies
// the vectors of some samples into shared memory once, and its threads compute tiles of 4 x 4
// products, or the gradients of 4 vectors. Both give the same bits.
// nn_worker/backend/device/dot_plan.h chooses one.

#ifndef SATRAP_NN_WORKER_DEVICE_KERNELS_PAIR_DOTS_H_
#define SATRAP_NN_WORKER_DEVICE_KERNELS_PAIR_DOTS_H_

#include <cstdint>

#include "nn_worker/device/device_stream.h"
#include "nn_worker/device/kernels/values.h"

namespace satrap {

// A term is one dot product: the numbers of two inputs, and the columns at which the two vectors
// begin. Lists of terms are in device memory.
struct DotTerm {
  int32_t a, a_column;
  int32_t b, b_column;
};

// Computes y[i, t] for the terms of a list.
//   inputs: any number in device memory   terms: [y.cols] in device memory   y: (n, terms)
void PairDots(DeviceStream* stream, const ConstValues* inputs, const DotTerm* terms, int64_t dim,
              Values y);

// Columns [column, column + width) of a gradient. The factors [first, first + count) of a list
// apply to all of these columns: each adds one product. Pieces of one launch must not overlap.
struct DotGradPiece {
  Values dx;
  int32_t column, width;
  int32_t first, count;
  int64_t add;  // 1: += instead of =
};
// The factor by which dy[i, term] is multiplied: the values of an input from `column` on.
struct DotFactor {
  int32_t term;
  int32_t input, column;
};

// Writes the columns of all pieces. A piece without factors gets 0, unless its `add` is set: then
// it stays unchanged.
//   pieces: [num_pieces] in device memory   `max_width`: the largest width   dy: (n, terms)
void PairDotsGrad(DeviceStream* stream, const ConstValues* inputs, const DotGradPiece* pieces,
                  int num_pieces, int64_t max_width, const DotFactor* factors, ConstValues dy);

// Vectors of samples, all of one dimension and type. Rows that begin at multiples of 16 bytes are
// read in accesses of 16 bytes; other rows are read value by value.
struct DotVector {
  const void* data;  // of the first sample
  int64_t stride;    // values from one sample to the next
};
struct DotVectors {
  const DotVector* list;  // in device memory
  int32_t count;
  ElementType type;
  int64_t dim;
};

// The tile of the products of vectors a, a + step, a + 2 step and a + 3 step with vectors b, b +
// step and so on, where `step` is DotTileStep(count). With this step, neighbouring tiles have
// neighbouring vectors, so the threads of a warp read different banks of shared memory.
inline constexpr int kDotTile = 4;
inline constexpr int kTileProducts = kDotTile * kDotTile;
struct DotTile {
  int32_t a, b;
};
constexpr int DotTileStep(int vectors) { return (vectors + kDotTile - 1) / kDotTile; }

// The number of samples that a block of PairDotsInTiles, or of PairDotsGradInTiles, handles. 0 if
// one sample does not fit into shared memory; that function must then not be called.
int DotTileSamples(int vectors, ElementType type, int64_t dim, int64_t terms);
int DotGradSamples(int vectors, ElementType type, int64_t dim);

// Like PairDots. Product (i, j) of tile k is written to y[., terms[4 i + j, k]], or not at all if
// that entry is -1. Each column of y is in one tile.
//   tiles: [num_tiles]   terms: [kTileProducts, num_tiles], both in device memory
void PairDotsInTiles(DeviceStream* stream, const DotVectors& vectors, const DotTile* tiles,
                     const int32_t* terms, int num_tiles, Values y);

// The gradient of one vector, of the same type as the vectors. Null data: not wanted
struct DotGradTarget {
  void* data;
  int64_t stride;
  int64_t add;  // 1: += instead of =
};
// The vectors of a term.
struct DotPair {
  int16_t a, b;
};
// Like PairDotsGrad. The products of a gradient are added in the order of the other vectors.
//   targets: [vectors.count]   pairs: [dy.cols], both in device memory
// REQUIRES: each pair of two different vectors is in exactly one term
void PairDotsGradInTiles(DeviceStream* stream, const DotVectors& vectors,
                         const DotGradTarget* targets, const DotPair* pairs, ConstValues dy);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_DEVICE_KERNELS_PAIR_DOTS_H_
