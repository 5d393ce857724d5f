// Describes a matrix product of a linear layer, for any library:
//
//   c = epilogue(op(a) op(b)), or epilogue(c + op(a) op(b))
//   c: (rows, cols); each value is a sum of `terms` products
//
//   forward           y  = x w      a: x (n, in)     b: w (in, out)              rows = n
//   input gradient    dx = dz w^T   a: dz (n, out)   b: w, transposed            rows = n
//   weight gradient   dw = x^T dz   a: x, transposed b: dz (n, out)              terms = n
//
// Matrices are stored row by row, as everywhere in this project. ColumnMajor is for libraries that
// expect Fortran's order.

#ifndef SATRAP_NN_WORKER_DEVICE_PRODUCT_SPEC_H_
#define SATRAP_NN_WORKER_DEVICE_PRODUCT_SPEC_H_

#include <cstdint>

namespace satrap {

// The type of the factors, and how they are multiplied. Sums are always f32.
enum class ProductPrecision {
  kF32,
  kTf32,  // f32 in memory, rounded to 10 bits of mantissa for the multiplication
  kBf16,
  kF16,
};

// The operation that is applied to the sums before they are stored in c. The bias has the type of
// c, and is added in f32 before the sum is rounded.
enum class ProductEpilogue {
  kNone,
  kBias,      // + bias, in each row
  kBiasRelu,  // max(0, the same)
};

struct ProductSpec {
  // The size of the largest product that the spec covers. A single product may have fewer samples.
  int64_t rows = 0, cols = 0, terms = 0;
  bool transpose_a = false;                          // a is stored as (terms, rows)
  bool transpose_b = false;                          // b is stored as (cols, terms)
  int64_t a_stride = 0, b_stride = 0, c_stride = 0;  // values from one stored row to the next
  // The addresses of the matrices are multiples of these numbers of bytes, which are at most 16 and
  // at least the size of a value.
  int64_t a_alignment = 16, b_alignment = 16, c_alignment = 16;
  ProductPrecision precision = ProductPrecision::kF32;
  bool f32_output = true;  // otherwise c has the type of the factors
  ProductEpilogue epilogue = ProductEpilogue::kNone;
  // If positive, the product is a weight gradient in pieces of this many samples; the last piece
  // may have fewer. c is then (pieces, rows, cols) without gaps between pieces: the products of the
  // pieces, in the order of the samples. Their sum is the gradient.
  int64_t piece = 0;

  // The size of the dimension that counts samples.
  int64_t samples() const { return transpose_a ? terms : rows; }
  // The number of products that c holds for a number of samples.
  int64_t pieces(int64_t of_samples) const {
    return piece < 1 ? 1 : (of_samples + piece - 1) / piece;
  }
};

// The number of samples in a piece of the weight gradient `spec`, whatever spec.piece is. It
// depends on the shape and the precision, and so on the number of samples that a layer is prepared
// for:
//   * as many pieces as give a card of some 130 multiprocessors about one tile each (two in F32 and
//     TF32, whose tiles are smaller), because a library computes each tile of c in one sequence
//   * at most kMostPieces pieces of at least kLeastPiece samples, and a short one for those that
//     are left
// With one piece the result is spec.samples(). REQUIRES: ForLibrary(spec) and spec.transpose_a
inline constexpr int64_t kMostPieces = 32;
inline constexpr int64_t kLeastPiece = 256;
int64_t WeightGradientPiece(const ProductSpec& spec);

// Whether a library should compute the product: no dimension is 0, and neither dimension of the
// weight matrix is less than 8. A library is slow at other products or refuses them, so our own
// kernels compute them.
bool ForLibrary(const ProductSpec& spec);

// The width that a matrix of `width` columns should have in memory, zeros included. Libraries read
// rows in pieces of 16 bytes: 8 values of 16 bits. They are slow if a width is not a multiple of 8,
// even if the stride is. Libraries do not compute products of widths below 8, so such widths stay
// as they are.
constexpr int64_t ProductWidth(int64_t width) { return width < 8 ? width : (width + 7) / 8 * 8; }

// The same product for a library that reads matrices column by column. For such a library, a matrix
// that is stored row by row is the transpose. Since c^T = op(b)^T op(a)^T, the factors change
// places.
//   d (m, n) = op(a) op(b). The rows, cols and stride of a factor are those of its stored matrix;
//   the stride is the number of values from one column to the next.
struct ColumnMajor {
  struct Factor {
    int64_t rows, cols, stride;
    bool transposed;
  };
  int64_t m, n, k;
  Factor a;  // of the spec: b
  Factor b;  // of the spec: a
  int64_t d_stride;
};
// `samples`: the number of samples in this run, at most spec.samples(). If there are pieces, it is
// the number of samples in one of them.
ColumnMajor ToColumnMajor(const ProductSpec& spec, int64_t samples);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_DEVICE_PRODUCT_SPEC_H_
