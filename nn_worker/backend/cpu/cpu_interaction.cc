#include "nn_worker/backend/cpu/cpu_interaction.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/functional/function_ref.h"
#include "common/base/check.h"
#include "common/numeric/vectorize.h"
#include "nn_worker/backend/cpu/host_tensor.h"

namespace satrap {
namespace {

// The number of rows in one piece of work. A row of an interaction costs more than a row in the
// loops of cpu_kernels.h.
constexpr int64_t kPieceRows = 32;
// The number of samples that PairDots computes together, one in each lane of a vector register.
constexpr int64_t kVectorLanes = 16;
// The number of dot products of one row that OneProduct computes at once.
constexpr int64_t kDots = 64;

void ForRows(ForkJoinPool& pool, int64_t rows, absl::FunctionRef<void(int64_t, int64_t)> body) {
  pool.Run((rows + kPieceRows - 1) / kPieceRows, [&](int64_t piece, int) {
    body(piece * kPieceRows, std::min(rows, (piece + 1) * kPieceRows));
  });
}

void CheckSameShape(const Tensor& a, const Tensor& b) {
  CHECK(a.rows == b.rows && a.cols == b.cols)
      << "(" << a.rows << ", " << a.cols << ") and (" << b.rows << ", " << b.cols << ")";
}

void CheckGroups(const Tensor& x, int64_t width) {
  CHECK(width > 0 && x.cols % width == 0) << x.cols << " columns in groups of " << width;
}

// y may be x.
SATRAP_VECTORIZE_FUSED void ScaleRow(float factor, const float* x, float* y, bool add,
                                     int64_t cols) {
  if (add) {
#pragma GCC ivdep
    for (int64_t c = 0; c < cols; ++c) y[c] += factor * x[c];
  } else {
#pragma GCC ivdep
    for (int64_t c = 0; c < cols; ++c) y[c] = factor * x[c];
  }
}

SATRAP_VECTORIZE_FUSED void MultiplyRow(const float* a, const float* b, float* y, bool add,
                                        int64_t cols) {
  if (add) {
#pragma GCC ivdep
    for (int64_t c = 0; c < cols; ++c) y[c] += a[c] * b[c];
  } else {
#pragma GCC ivdep
    for (int64_t c = 0; c < cols; ++c) y[c] = a[c] * b[c];
  }
}

SATRAP_VECTORIZE_FUSED void TransposeRow(const float* __restrict x, int64_t rows, int64_t cols,
                                         float* __restrict y, bool add) {
  for (int64_t c = 0; c < cols; ++c) {
    for (int64_t r = 0; r < rows; ++r) {
      const float value = x[r * cols + c];
      y[c * rows + r] = add ? y[c * rows + r] + value : value;
    }
  }
}

// The compiler may not reorder a sum, so the source uses an order that fits a vector register:
// value c is added to lane c % kVectorLanes, and the lanes are added pairwise.
//
// By default a function that is compiled for another CPU than its caller is not inlined, and a call
// for each pair of short rows would cost more than the sum. Callers are SAME_BITS: Dot used to be a
// function of its own, without fused products, and saved models must keep giving the same bits.
[[gnu::always_inline]] inline float Dot(const float* __restrict a, const float* __restrict b,
                                        int64_t count) {
  float lanes[kVectorLanes] = {};
  int64_t c = 0;
  for (; c + kVectorLanes <= count; c += kVectorLanes) {
    for (int k = 0; k < kVectorLanes; ++k) lanes[k] += a[c + k] * b[c + k];
  }
  for (int k = 0; c + k < count; ++k) lanes[k] += a[c + k] * b[c + k];
  for (int width = kVectorLanes / 2; width > 0; width /= 2) {
    for (int k = 0; k < width; ++k) lanes[k] += lanes[k + width];
  }
  return lanes[0];
}

// dots[i] = the dot product of `a` and row i of `b`, for each of `n` rows.
SATRAP_VECTORIZE_SAME_BITS void DotRows(const float* __restrict a, const float* __restrict b,
                                        int64_t b_stride, int64_t n, int64_t count,
                                        float* __restrict dots) {
  for (int64_t i = 0; i < n; ++i) dots[i] = Dot(a, b + i * b_stride, count);
}

// The shape of one product of BatchedProduct. The distance between neighbouring rows of op(A) is
// `a_row` values, and the distance between neighbouring columns is `a_col` values. If B is not
// transposed, multiples of its rows are added to rows of Y; if B is transposed, rows of A are
// multiplied by rows of B.
struct ProductShape {
  int64_t m, n, k;
  int64_t a_row, a_col, b_stride, y_stride;
  bool b_transposed, add;
  float scale;
};

SATRAP_VECTORIZE_FUSED void OneProduct(const ProductShape& s, const float* __restrict a,
                                       const float* __restrict b, float* __restrict y) {
  for (int64_t r = 0; r < s.m; ++r) {
    float* row = y + r * s.y_stride;
    if (s.b_transposed && s.a_col == 1) {
      float dots[kDots];
      for (int64_t from = 0; from < s.n; from += kDots) {
        const int64_t n = std::min(kDots, s.n - from);
        DotRows(a + r * s.a_row, b + from * s.b_stride, s.b_stride, n, s.k, dots);
        for (int64_t c = 0; c < n; ++c) {
          const float value = s.scale * dots[c];
          row[from + c] = s.add ? row[from + c] + value : value;
        }
      }
      continue;
    }
    if (!s.add) std::fill_n(row, s.n, 0.0f);
    for (int64_t k = 0; k < s.k; ++k) {
      const float factor = s.scale * a[r * s.a_row + k * s.a_col];
      if (s.b_transposed) {
        for (int64_t c = 0; c < s.n; ++c) row[c] += factor * b[c * s.b_stride + k];
      } else {
        const float* from = b + k * s.b_stride;
        for (int64_t c = 0; c < s.n; ++c) row[c] += factor * from[c];
      }
    }
  }
}

// Transposes the values of kVectorLanes samples, or of the last few samples, so that each column
// becomes a row of lanes. Lanes without a sample get 0.
SATRAP_VECTORIZE_FUSED void ToLanes(const float* __restrict x, int64_t stride, int64_t cols,
                                    int64_t samples, float* __restrict lanes) {
  if (samples < kVectorLanes) std::fill_n(lanes, cols * kVectorLanes, 0.0f);
  for (int64_t k = 0; k < samples; ++k) {
    for (int64_t c = 0; c < cols; ++c) lanes[c * kVectorLanes + k] = x[k * stride + c];
  }
}

SATRAP_VECTORIZE_FUSED void DotLanes(const float* __restrict a, const float* __restrict b,
                                     int64_t dim, float* __restrict sums) {
  float lanes[kVectorLanes] = {};
  for (int64_t d = 0; d < dim; ++d) {
    for (int k = 0; k < kVectorLanes; ++k)
      lanes[k] += a[d * kVectorLanes + k] * b[d * kVectorLanes + k];
  }
  for (int k = 0; k < kVectorLanes; ++k) sums[k] = lanes[k];
}

// da and db may be null.
SATRAP_VECTORIZE_FUSED void PairGradRow(float dy, const float* a, const float* b, float* da,
                                        float* db, int64_t dim) {
  if (da != nullptr) {
#pragma GCC ivdep
    for (int64_t d = 0; d < dim; ++d) da[d] += dy * b[d];
  }
  if (db != nullptr) {
#pragma GCC ivdep
    for (int64_t d = 0; d < dim; ++d) db[d] += dy * a[d];
  }
}

// y holds the sum of squares until HalfDifferenceRow replaces it.
SATRAP_VECTORIZE_FUSED void AddToSums(const float* __restrict x, float* __restrict s,
                                      float* __restrict y, bool first, int64_t cols) {
  for (int64_t c = 0; c < cols; ++c) {
    s[c] = first ? x[c] : s[c] + x[c];
    y[c] = first ? x[c] * x[c] : y[c] + x[c] * x[c];
  }
}

SATRAP_VECTORIZE_FUSED void HalfDifferenceRow(const float* __restrict s, float* __restrict y,
                                              int64_t cols) {
  for (int64_t c = 0; c < cols; ++c) y[c] = 0.5f * (s[c] * s[c] - y[c]);
}

SATRAP_VECTORIZE_FUSED void BiInteractionGradRow(const float* __restrict x,
                                                 const float* __restrict s,
                                                 const float* __restrict dy, float* __restrict dx,
                                                 bool add, int64_t cols) {
  for (int64_t c = 0; c < cols; ++c) {
    const float value = dy[c] * (s[c] - x[c]);
    dx[c] = add ? dx[c] + value : value;
  }
}

void SoftmaxGroup(const float* x, int64_t width, float* y) {
  float largest = x[0];
  for (int64_t c = 1; c < width; ++c) largest = std::max(largest, x[c]);
  float sum = 0;
  for (int64_t c = 0; c < width; ++c) {
    // If x[c] is NaN, so is the result, whichever value std::max has kept as the largest.
    y[c] = std::exp(x[c] - largest);
    sum += y[c];
  }
  for (int64_t c = 0; c < width; ++c) y[c] /= sum;
}

// dx = inverse * (dy - shift - y * slope), for both normalisations.
SATRAP_VECTORIZE_FUSED void AffineGradGroup(float inverse, float shift, float slope, const float* y,
                                            const float* dy, float* dx, bool add, int64_t width) {
#pragma GCC ivdep
  for (int64_t c = 0; c < width; ++c) {
    const float value = inverse * (dy[c] - shift - y[c] * slope);
    dx[c] = add ? dx[c] + value : value;
  }
}

SATRAP_VECTORIZE_SAME_BITS float DotGroup(const float* a, const float* b, int64_t width) {
  return Dot(a, b, width);
}

// The mean of a group's values. It is computed in double, because a float would lose the
// differences between values that are far from 0.
double MeanOf(const float* x, int64_t width) {
  double sum = 0;
  for (int64_t c = 0; c < width; ++c) sum += x[c];
  return sum / static_cast<double>(width);
}

float NormalizeGroup(Normalization kind, const float* x, int64_t width, float epsilon, float* y) {
  const double mean = kind == Normalization::kLayer ? MeanOf(x, width) : 0;
  double squares = 0;
  for (int64_t c = 0; c < width; ++c) squares += (x[c] - mean) * (x[c] - mean);
  if (kind == Normalization::kLayer) squares /= static_cast<double>(width);
  const double inverse = 1 / std::sqrt(squares + epsilon);
  for (int64_t c = 0; c < width; ++c) y[c] = static_cast<float>((x[c] - mean) * inverse);
  return static_cast<float>(inverse);
}

// The shape of a matrix of BatchedProduct after its transposition, if there is one.
int64_t RowsOf(const SampleMatrices& m) { return m.transposed ? m.cols : m.rows; }
int64_t ColsOf(const SampleMatrices& m) { return m.transposed ? m.rows : m.cols; }

void CheckMatrices(const SampleMatrices& m, int64_t count) {
  CHECK(m.rows > 0 && m.cols > 0 && m.stride >= m.cols);
  CHECK((count - 1) * m.step + (m.rows - 1) * m.stride + m.cols <= m.tensor.cols)
      << count << " matrices of (" << m.rows << ", " << m.cols << ") in " << m.tensor.cols;
}

}  // namespace

void CpuInteractionBackend::Scale(float factor, Tensor x, Tensor y, bool add) {
  CheckSameShape(x, y);
  ForRows(interaction_pool_, y.rows, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      ScaleRow(factor, FloatsOf(x, i), FloatsOf(y, i), add, y.cols);
    }
  });
}

void CpuInteractionBackend::Multiply(Tensor a, Tensor b, Tensor y, bool add) {
  CheckSameShape(a, y);
  const bool by_row = b.rows == y.rows && b.cols == 1;
  const bool same = b.rows == y.rows && b.cols == y.cols;
  if (!by_row && !same) {
    CHECK(b.rows == 1) << "(" << b.rows << ", " << b.cols << ")";
    CheckGroups(y, b.cols);
  }
  ForRows(interaction_pool_, y.rows, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if (by_row) {
        ScaleRow(*FloatsOf(b, i), FloatsOf(a, i), FloatsOf(y, i), add, y.cols);
        continue;
      }
      const float* factors = FloatsOf(b, same ? i : 0);
      for (int64_t c = 0; c < y.cols; c += b.cols) {
        MultiplyRow(FloatsOf(a, i) + c, factors, FloatsOf(y, i) + c, add, b.cols);
      }
    }
  });
}

void CpuInteractionBackend::Transpose(Tensor x, int64_t width, Tensor y, bool add) {
  CheckSameShape(x, y);
  CheckGroups(x, width);
  ForRows(interaction_pool_, y.rows, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      TransposeRow(FloatsOf(x, i), x.cols / width, width, FloatsOf(y, i), add);
    }
  });
}

void CpuInteractionBackend::BatchedProduct(const SampleMatrices& a, const SampleMatrices& b,
                                           int64_t count, float scale, const SampleMatrices& y,
                                           bool add) {
  CHECK(!y.transposed && RowsOf(a) == y.rows && ColsOf(b) == y.cols && ColsOf(a) == RowsOf(b));
  CHECK(a.tensor.rows == y.tensor.rows && b.tensor.rows == y.tensor.rows);
  for (const SampleMatrices* m : {&a, &b, &y}) CheckMatrices(*m, count);
  const ProductShape shape = {y.rows,
                              y.cols,
                              ColsOf(a),
                              a.transposed ? 1 : a.stride,
                              a.transposed ? a.stride : 1,
                              b.stride,
                              y.stride,
                              b.transposed,
                              add,
                              scale};
  ForRows(interaction_pool_, y.tensor.rows, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      for (int64_t m = 0; m < count; ++m) {
        OneProduct(shape, FloatsOf(a.tensor, i) + m * a.step, FloatsOf(b.tensor, i) + m * b.step,
                   FloatsOf(y.tensor, i) + m * y.step);
      }
    }
  });
}

// A product of two short vectors would spend most of its time on adding up the lanes of a register.
// Instead, kVectorLanes samples are transposed and each sample is a lane; a register holds one
// column.
void CpuInteractionBackend::PairDots(absl::Span<const Tensor> xs, absl::Span<const PairTerm> terms,
                                     int64_t dim, Tensor y) {
  CHECK(y.cols == static_cast<int64_t>(terms.size()));
  std::vector<int64_t> first_column = {0};
  for (const Tensor& x : xs) {
    CHECK(x.rows == y.rows);
    first_column.push_back(first_column.back() + x.cols);
  }
  for (const PairTerm& term : terms) {
    CHECK(term.a_column + dim <= xs[term.a].cols && term.b_column + dim <= xs[term.b].cols);
  }
  const int64_t scratch = first_column.back() * kVectorLanes;
  float* lanes = interaction_scratch_.Get<float>(scratch * interaction_pool_.num_threads());
  const int64_t blocks = (y.rows + kVectorLanes - 1) / kVectorLanes;
  interaction_pool_.Run(blocks, [&](int64_t block, int thread) {
    float* of_thread = lanes + thread * scratch;
    const int64_t begin = block * kVectorLanes;
    const int64_t samples = std::min(kVectorLanes, y.rows - begin);
    for (size_t f = 0; f < xs.size(); ++f) {
      ToLanes(FloatsOf(xs[f], begin), xs[f].stride, xs[f].cols, samples,
              of_thread + first_column[f] * kVectorLanes);
    }
    for (size_t t = 0; t < terms.size(); ++t) {
      const PairTerm& term = terms[t];
      float sums[kVectorLanes];
      DotLanes(of_thread + (first_column[term.a] + term.a_column) * kVectorLanes,
               of_thread + (first_column[term.b] + term.b_column) * kVectorLanes, dim, sums);
      for (int64_t k = 0; k < samples; ++k) FloatsOf(y, begin + k)[t] = sums[k];
    }
  });
}

void CpuInteractionBackend::PairDotsGrad(absl::Span<const Tensor> xs,
                                         absl::Span<const PairTerm> terms, int64_t dim, Tensor dy,
                                         absl::Span<const GradientTarget> dxs) {
  CHECK(xs.size() == dxs.size() && dy.cols == static_cast<int64_t>(terms.size()));
  ForRows(interaction_pool_, dy.rows, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      for (const GradientTarget& dx : dxs) {
        if (dx.wanted() && !dx.add) std::fill_n(FloatsOf(dx.tensor, i), dx.tensor.cols, 0.0f);
      }
      for (size_t t = 0; t < terms.size(); ++t) {
        const PairTerm& term = terms[t];
        const GradientTarget& da = dxs[term.a];
        const GradientTarget& db = dxs[term.b];
        PairGradRow(FloatsOf(dy, i)[t], FloatsOf(xs[term.a], i) + term.a_column,
                    FloatsOf(xs[term.b], i) + term.b_column,
                    da.wanted() ? FloatsOf(da.tensor, i) + term.a_column : nullptr,
                    db.wanted() ? FloatsOf(db.tensor, i) + term.b_column : nullptr, dim);
      }
    }
  });
}

void CpuInteractionBackend::BiInteraction(absl::Span<const Tensor> xs, Tensor s, Tensor y) {
  CHECK(!xs.empty());
  for (const Tensor& x : xs) CheckSameShape(x, y);
  CheckSameShape(s, y);
  ForRows(interaction_pool_, y.rows, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      for (size_t f = 0; f < xs.size(); ++f) {
        AddToSums(FloatsOf(xs[f], i), FloatsOf(s, i), FloatsOf(y, i), f == 0, y.cols);
      }
      HalfDifferenceRow(FloatsOf(s, i), FloatsOf(y, i), y.cols);
    }
  });
}

void CpuInteractionBackend::BiInteractionGrad(absl::Span<const Tensor> xs, Tensor s, Tensor dy,
                                              absl::Span<const GradientTarget> dxs) {
  CHECK(xs.size() == dxs.size());
  ForRows(interaction_pool_, dy.rows, [&](int64_t begin, int64_t end) {
    for (size_t f = 0; f < xs.size(); ++f) {
      if (!dxs[f].wanted()) continue;
      for (int64_t i = begin; i < end; ++i) {
        BiInteractionGradRow(FloatsOf(xs[f], i), FloatsOf(s, i), FloatsOf(dy, i),
                             FloatsOf(dxs[f].tensor, i), dxs[f].add, dy.cols);
      }
    }
  });
}

void CpuInteractionBackend::Softmax(Tensor x, int64_t width, Tensor y) {
  CheckSameShape(x, y);
  CheckGroups(x, width);
  ForRows(interaction_pool_, y.rows, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      for (int64_t c = 0; c < y.cols; c += width) {
        SoftmaxGroup(FloatsOf(x, i) + c, width, FloatsOf(y, i) + c);
      }
    }
  });
}

void CpuInteractionBackend::SoftmaxGrad(Tensor y, Tensor dy, int64_t width, GradientTarget dx) {
  if (!dx.wanted()) return;
  CheckGroups(y, width);
  ForRows(interaction_pool_, y.rows, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      for (int64_t c = 0; c < y.cols; c += width) {
        const float* of_y = FloatsOf(y, i) + c;
        const float* of_dy = FloatsOf(dy, i) + c;
        const float sum = DotGroup(of_dy, of_y, width);
        // Computes y (dy - sum) as y dy - y sum.
        float* to = FloatsOf(dx.tensor, i) + c;
        MultiplyRow(of_y, of_dy, to, dx.add, width);
        ScaleRow(-sum, of_y, to, /*add=*/true, width);
      }
    }
  });
}

void CpuInteractionBackend::Normalize(Normalization kind, Tensor x, int64_t width, float epsilon,
                                      Tensor y, Tensor inverse) {
  CheckSameShape(x, y);
  CheckGroups(x, width);
  CHECK(inverse.rows == y.rows && inverse.cols == y.cols / width);
  ForRows(interaction_pool_, y.rows, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      for (int64_t g = 0; g < inverse.cols; ++g) {
        FloatsOf(inverse, i)[g] = NormalizeGroup(kind, FloatsOf(x, i) + g * width, width, epsilon,
                                                 FloatsOf(y, i) + g * width);
      }
    }
  });
}

void CpuInteractionBackend::NormalizeGrad(Normalization kind, Tensor y, Tensor inverse, Tensor dy,
                                          int64_t width, GradientTarget dx) {
  if (!dx.wanted()) return;
  CheckGroups(y, width);
  ForRows(interaction_pool_, y.rows, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      for (int64_t g = 0; g < inverse.cols; ++g) {
        const float* of_y = FloatsOf(y, i) + g * width;
        const float* of_dy = FloatsOf(dy, i) + g * width;
        float slope = DotGroup(of_dy, of_y, width);
        float shift = 0;
        if (kind == Normalization::kLayer) {
          slope /= static_cast<float>(width);
          shift = static_cast<float>(MeanOf(of_dy, width));
        }
        AffineGradGroup(FloatsOf(inverse, i)[g], shift, slope, of_y, of_dy,
                        FloatsOf(dx.tensor, i) + g * width, dx.add, width);
      }
    }
  });
}

}  // namespace satrap
