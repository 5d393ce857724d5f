#include "nn_worker/device/kernels/pair_dots.h"

#include "nn_worker/device/kernel.h"
#include "nn_worker/device/kernels/elementwise.h"
#include "nn_worker/device/kernels/value_access.h"

namespace satrap {
namespace {

// Loads a group of the vector that begins at column `begin`, in one access if the vector begins at
// a multiple of 4 values.
SATRAP_DEVICE Group LoadPart(const ConstValues& x, int64_t row, int64_t begin, int64_t offset,
                             int64_t left) {
  return LoadGroup(x.data, x.type, row * x.stride + begin + offset, left,
                   x.aligned != 0 && begin % kGroup == 0);
}

// Each thread computes one product. Neighbouring threads compute neighbouring terms of a sample,
// whose vectors are in the cache.
SATRAP_KERNEL void PairDotsKernel(const ConstValues* inputs, const DotTerm* terms, int64_t dim,
                                  Values y) {
  ForEachGroup(y.rows, y.cols, [&](int64_t r, int64_t t) {
    const DotTerm term = terms[t];
    const ConstValues a = inputs[term.a], b = inputs[term.b];
    float sum = 0;
    for (int64_t d = 0; d < dim; d += kGroup) {
      const Group of_a = LoadPart(a, r, term.a_column, d, dim - d);
      const Group of_b = LoadPart(b, r, term.b_column, d, dim - d);
      for (int i = 0; i < kGroup; ++i) sum += of_a.lane[i] * of_b.lane[i];
    }
    StoreValue(y, r, t, sum);
  });
}

SATRAP_KERNEL void PairDotsGradKernel(const ConstValues* inputs, const DotGradPiece* pieces,
                                      const DotFactor* factors, ConstValues dy) {
  const DotGradPiece piece = pieces[BlockIndex().z];
  const bool aligned = piece.dx.aligned != 0 && piece.column % kGroup == 0;
  ForEachGroup(dy.rows, GroupsOf(piece.width), [&](int64_t r, int64_t g) {
    const int64_t offset = g * kGroup, left = piece.width - offset;
    const int64_t at = r * piece.dx.stride + piece.column + offset;
    Group sum = {};
    for (int32_t f = piece.first; f < piece.first + piece.count; ++f) {
      const DotFactor factor = factors[f];
      const float slope = LoadValue(dy, r, factor.term);
      const Group values = LoadPart(inputs[factor.input], r, factor.column, offset, left);
      for (int i = 0; i < kGroup; ++i) sum.lane[i] += slope * values.lane[i];
    }
    if (piece.add != 0) {
      const Group before = LoadGroup(piece.dx.data, piece.dx.type, at, left, aligned);
      for (int i = 0; i < kGroup; ++i) sum.lane[i] += before.lane[i];
    }
    StoreGroup(piece.dx.data, piece.dx.type, at, sum, left, aligned);
  });
}

// The z index of a block is the number of its piece. A card has at most 65535 blocks in z.
constexpr int kMaxPieces = 65535;

}  // namespace

void PairDots(DeviceStream* stream, const ConstValues* inputs, const DotTerm* terms, int64_t dim,
              Values y) {
  if (y.rows == 0 || y.cols == 0) return;
  const ElementwiseShape shape = ShapeOf(y.rows, y.cols);
  Launch<PairDotsKernel>(stream, shape.grid, shape.block, 0, inputs, terms, dim, y);
}

void PairDotsGrad(DeviceStream* stream, const ConstValues* inputs, const DotGradPiece* pieces,
                  int num_pieces, int64_t max_width, const DotFactor* factors, ConstValues dy) {
  if (dy.rows == 0 || max_width == 0) return;
  ElementwiseShape shape = ShapeOf(dy.rows, GroupsOf(max_width));
  for (int first = 0; first < num_pieces; first += kMaxPieces) {
    const int left = num_pieces - first;
    shape.grid.z = static_cast<uint32_t>(left < kMaxPieces ? left : kMaxPieces);
    Launch<PairDotsGradKernel>(stream, shape.grid, shape.block, 0, inputs, pieces + first, factors,
                               dy);
  }
}

}  // namespace satrap
