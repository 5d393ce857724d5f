#include "nn_worker/device/product_spec.h"

#include <vector>

#include "gtest/gtest.h"

namespace satrap {
namespace {

// Computes c by its definition, from matrices that are stored row by row.
std::vector<double> RowByRow(const ProductSpec& spec, const std::vector<double>& a,
                             const std::vector<double>& b, int64_t size) {
  std::vector<double> c(size, -1);
  for (int64_t i = 0; i < spec.rows; ++i) {
    for (int64_t j = 0; j < spec.cols; ++j) {
      double sum = 0;
      for (int64_t t = 0; t < spec.terms; ++t) {
        sum += a[spec.transpose_a ? t * spec.a_stride + i : i * spec.a_stride + t] *
               b[spec.transpose_b ? j * spec.b_stride + t : t * spec.b_stride + j];
      }
      c[i * spec.c_stride + j] = sum;
    }
  }
  return c;
}

// op(factor)(i, j), read column by column. Fails if the element is outside the declared size.
double At(const ColumnMajor::Factor& factor, const std::vector<double>& values, int64_t i,
          int64_t j) {
  const int64_t row = factor.transposed ? j : i, col = factor.transposed ? i : j;
  EXPECT_LT(row, factor.rows);
  EXPECT_LT(col, factor.cols);
  EXPECT_LE(factor.rows, factor.stride);
  return values[col * factor.stride + row];
}

std::vector<double> ColumnByColumn(const ColumnMajor& product, const std::vector<double>& spec_a,
                                   const std::vector<double>& spec_b, int64_t size) {
  std::vector<double> d(size, -1);
  for (int64_t i = 0; i < product.m; ++i) {
    for (int64_t j = 0; j < product.n; ++j) {
      double sum = 0;
      for (int64_t t = 0; t < product.k; ++t) {
        sum += At(product.a, spec_b, i, t) * At(product.b, spec_a, t, j);
      }
      d[j * product.d_stride + i] = sum;
    }
  }
  return d;
}

std::vector<double> Numbers(int64_t count, int seed) {
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<double>((i * 7 + seed) % 23));
  return values;
}

TEST(ProductSpecTest, ColumnByColumnItIsTheSameProduct) {
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      ProductSpec spec;
      spec.rows = 5;
      spec.cols = 9;
      spec.terms = 4;
      spec.transpose_a = transpose_a;
      spec.transpose_b = transpose_b;
      // Each matrix has gaps of a different width between its rows.
      spec.a_stride = (transpose_a ? spec.rows : spec.terms) + 1;
      spec.b_stride = (transpose_b ? spec.terms : spec.cols) + 2;
      spec.c_stride = spec.cols + 3;
      const auto a = Numbers(200, 3), b = Numbers(200, 11);
      for (const int64_t samples : {spec.samples(), spec.samples() - 2}) {
        ProductSpec fewer = spec;
        (transpose_a ? fewer.terms : fewer.rows) = samples;
        EXPECT_EQ(ColumnByColumn(ToColumnMajor(spec, samples), a, b, 200),
                  RowByRow(fewer, a, b, 200))
            << transpose_a << " " << transpose_b << " " << samples;
      }
    }
  }
}

ProductSpec Forward(int64_t n, int64_t in, int64_t out) {
  ProductSpec spec;
  spec.rows = n;
  spec.cols = out;
  spec.terms = in;
  return spec;
}

TEST(ProductSpecTest, FewOutputsAndEmptyDimensionsAreNotForALibrary) {
  EXPECT_TRUE(ForLibrary(Forward(1, 8, 8)));
  EXPECT_FALSE(ForLibrary(Forward(100, 400, 7)));
  EXPECT_FALSE(ForLibrary(Forward(100, 7, 400)));
  EXPECT_FALSE(ForLibrary(Forward(0, 400, 400)));
  EXPECT_FALSE(ForLibrary(Forward(100, 0, 400)));
  // In a weight gradient, rows and cols are the dimensions of the weights, and terms are the
  // samples.
  ProductSpec gradient = Forward(400, 3, 400);
  gradient.transpose_a = true;
  EXPECT_TRUE(ForLibrary(gradient));
  gradient.rows = 7;
  EXPECT_FALSE(ForLibrary(gradient));
}

int64_t PieceOf(int64_t n, int64_t in, int64_t out, ProductPrecision precision) {
  ProductSpec spec;
  spec.rows = in;
  spec.cols = out;
  spec.terms = n;
  spec.transpose_a = true;
  spec.precision = precision;
  return WeightGradientPiece(spec);
}

TEST(ProductSpecTest, PiecesOfAWeightGradientFillACard) {
  constexpr auto kBf16 = ProductPrecision::kBf16, kTf32 = ProductPrecision::kTf32;
  EXPECT_EQ(PieceOf(131072, 432, 400, kBf16), 131072 / 16);
  EXPECT_EQ(PieceOf(131072, 432, 400, ProductPrecision::kF16), 131072 / 16);
  EXPECT_EQ(PieceOf(131072, 400, 400, kTf32), 131072 / 32);
  EXPECT_EQ(PieceOf(131072, 400, 400, ProductPrecision::kF32), 131072 / 32);
  EXPECT_EQ(PieceOf(8192, 400, 400, kBf16), 512);
  EXPECT_EQ(PieceOf(131072, 1024, 1024, kBf16), 131072 / 4) << "it has more tiles";
  EXPECT_EQ(PieceOf(131072, 64, 16, kBf16), 131072 / kMostPieces);
  EXPECT_EQ(PieceOf(131072, 8192, 8192, kBf16), 131072) << "one piece fills a card";
}

TEST(ProductSpecTest, FewSamplesAreOnePiece) {
  EXPECT_EQ(PieceOf(2 * kLeastPiece - 1, 400, 400, ProductPrecision::kF32), 2 * kLeastPiece - 1);
  EXPECT_EQ(PieceOf(2 * kLeastPiece, 400, 400, ProductPrecision::kF32), kLeastPiece);
}

TEST(ProductSpecTest, WhatIsLeftOfAFullPartIsShort) {
  ProductSpec spec;
  for (const int64_t n : {513, 5000, 100000, 131071}) {
    spec.piece = PieceOf(n, 400, 400, ProductPrecision::kBf16);
    EXPECT_EQ(spec.piece % 8, 0);
    EXPECT_LE(n % spec.piece, 8 * spec.pieces(n)) << n;
  }
}

TEST(ProductSpecTest, AnIncompletePieceCounts) {
  ProductSpec spec;
  EXPECT_EQ(spec.pieces(1000), 1);
  spec.piece = 100;
  EXPECT_EQ(spec.pieces(1), 1);
  EXPECT_EQ(spec.pieces(100), 1);
  EXPECT_EQ(spec.pieces(101), 2);
}

}  // namespace
}  // namespace satrap
