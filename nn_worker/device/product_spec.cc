#include "nn_worker/device/product_spec.h"

namespace satrap {
namespace {

constexpr int64_t kLeastOutputs = 8;
constexpr int64_t kMaskAlignment = 128;

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

int64_t MaskStride(int64_t cols) {
  return (cols + kMaskAlignment - 1) / kMaskAlignment * kMaskAlignment;
}

}  // namespace satrap
