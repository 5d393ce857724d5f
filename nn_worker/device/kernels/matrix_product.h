// Products of matrices by our own kernel, with tiles in shared memory and a few outputs per thread.
// It is used for products that a vendor's library refuses or computes slowly (few outputs, empty
// dimensions), and for all products on the host's device.
//
// Factors and results may have 16 bits. Every output is a sum in f32 in the order of k, rounded
// once. A product over very many terms can be divided into pieces, which are added in order; the
// order of a sum then depends only on the number of terms and the length of a piece.

#ifndef SATRAP_NN_WORKER_DEVICE_KERNELS_MATRIX_PRODUCT_H_
#define SATRAP_NN_WORKER_DEVICE_KERNELS_MATRIX_PRODUCT_H_

#include <cstdint>

#include "nn_worker/device/device_stream.h"
#include "nn_worker/device/kernels/values.h"
#include "nn_worker/operation/operation_kinds.h"

namespace satrap {

// Element (i, j) is at data + i * row_stride + j * col_stride; a transposed matrix has its strides
// swapped. One of the two strides is 1.
struct Factor {
  const void* data;
  ElementType type;
  int64_t row_stride;
  int64_t col_stride;
};
inline Factor FactorOf(const ConstValues& m) { return {m.data, m.type, m.stride, 1}; }
inline Factor Transposed(const ConstValues& m) { return {m.data, m.type, 1, m.stride}; }

struct MatrixProduct {
  Factor a;  // (c.rows, k)
  Factor b;  // (k, c.cols)
  Values c;
  int64_t k;              // 0: every sum is 0
  ConstValues bias = {};  // (1, c.cols), or without data for none
  Activation activation = Activation::kLinear;
  bool add = false;
};

inline constexpr int64_t kProductPiece = 1024;

// The number of values of `partials` that MultiplyInPieces needs.
inline int64_t ProductPartials(int64_t rows, int64_t cols, int64_t k,
                               int64_t piece = kProductPiece) {
  return k <= piece ? 0 : (k + piece - 1) / piece * rows * cols;
}

// c = activation(a b + bias) or, with `add`, c += activation(a b + bias).
void Multiply(DeviceStream* stream, const MatrixProduct& product);
// As Multiply, but with k divided into pieces, so that the whole card is used even if c is small
// and k is large. REQUIRES: no bias, activation or add; c is f32, without gaps
//   piece: the number of terms of a piece, >= 1; the last piece may have fewer
//   partials: [ProductPartials(c.rows, c.cols, k, piece)], overwritten
void MultiplyInPieces(DeviceStream* stream, const MatrixProduct& product, float* partials,
                      int64_t piece = kProductPiece);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_DEVICE_KERNELS_MATRIX_PRODUCT_H_
