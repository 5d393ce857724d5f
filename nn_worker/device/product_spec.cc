#include "nn_worker/device/product_spec.h"

#include <algorithm>

namespace satrap {
namespace {

constexpr int64_t kLeastOutputs = 8;
// The size of the tiles in which a library's 16-bit kernels compute c, and the number of tiles that
// keep a card busy.
constexpr int64_t kTileRows = 128, kTileCols = 256;
constexpr int64_t kTiles = 128;
// Pieces begin at multiples of this many samples, so that factors keep their alignment.
constexpr int64_t kPieceStep = 8;

int64_t Ceiling(int64_t size, int64_t step) { return (size + step - 1) / step; }

}  // namespace

bool ForLibrary(const ProductSpec& spec) {
  if (spec.rows < 1 || spec.cols < 1 || spec.terms < 1) return false;
  const int64_t other = spec.transpose_a ? spec.rows : spec.terms;
  return spec.cols >= kLeastOutputs && other >= kLeastOutputs;
}

ColumnMajor ToColumnMajor(const ProductSpec& spec, int64_t samples) {
  const int64_t rows = spec.transpose_a ? spec.rows : samples;
  const int64_t terms = spec.transpose_a ? samples : spec.terms;
  ColumnMajor product;
  product.m = spec.cols;
  product.n = rows;
  product.k = terms;
  product.a = spec.transpose_b ? ColumnMajor::Factor{terms, spec.cols, spec.b_stride, true}
                               : ColumnMajor::Factor{spec.cols, terms, spec.b_stride, false};
  product.b = spec.transpose_a ? ColumnMajor::Factor{rows, terms, spec.a_stride, true}
                               : ColumnMajor::Factor{terms, rows, spec.a_stride, false};
  product.d_stride = spec.c_stride;
  return product;
}

int64_t WeightGradientPiece(const ProductSpec& spec) {
  const bool narrow =
      spec.precision == ProductPrecision::kBf16 || spec.precision == ProductPrecision::kF16;
  const int64_t tiles = Ceiling(spec.rows, kTileRows) * Ceiling(spec.cols, kTileCols);
  const int64_t wanted = (narrow ? 1 : 2) * kTiles / tiles;
  const int64_t pieces = std::min({wanted, kMostPieces, spec.samples() / kLeastPiece});
  if (pieces <= 1) return spec.samples();
  // The result is rounded down, so that the last piece of a full part is short. The last piece is a
  // separate product, computed in one sequence: if it had as many samples as another piece, it
  // would take as long as all other pieces together.
  return spec.samples() / pieces / kPieceStep * kPieceStep;
}

}  // namespace satrap
