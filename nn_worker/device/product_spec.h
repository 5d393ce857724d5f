// Describes a matrix product of a linear layer, for any library:
//
//   c = epilogue(op(a) op(b)), or epilogue(c + op(a) op(b))
//   c: (rows, cols); each value is a sum of `terms` products
//
//   forward           y  = x w      a: x (n, in)     b: w (in, out)              rows = n
//   input gradient    dx = dz w^T   a: dz (n, out)   b: w, transposed            rows = n
//   weight gradient   dw = x^T dz   a: x, transposed b: dz (n, out)              terms = n
//
// Matrices are stored row by row, as everywhere in this project. For libraries that expect
// Fortran's order there is ColumnMajor.

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

// What is done with the sums before they are stored in c. A bias and sums of columns are f32,
// whatever type c has.
enum class ProductEpilogue {
  kNone,
  kBias,          // + bias, in each row
  kBiasRelu,      // max(0, the same)
  kBiasReluMask,  // the same; `mask` gets a bit for each value: whether it is positive
  kReluGrad,      // 0 where `mask` has no bit
  kColumnSums,    // unchanged; `sums` gets the sum of each column of op(b): the gradient of a bias
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

  // The size of the dimension that counts samples.
  int64_t samples() const { return transpose_a ? terms : rows; }
};

// Whether a library should compute the product: no dimension is 0, and neither dimension of the
// weight matrix is under 8. A library is slow at other products or refuses them, so our own kernels
// compute them.
bool ForLibrary(const ProductSpec& spec);

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
// `samples`: the number of samples in this run, at most spec.samples().
ColumnMajor ToColumnMajor(const ProductSpec& spec, int64_t samples);

// The distance from one row of a mask to the next, in bits: cuBLASLt wants a multiple of 128.
int64_t MaskStride(int64_t cols);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_DEVICE_PRODUCT_SPEC_H_
