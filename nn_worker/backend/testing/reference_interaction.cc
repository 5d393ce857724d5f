#include "nn_worker/backend/testing/reference_interaction.h"

#include <cmath>
#include <vector>

#include "nn_worker/backend/cpu/host_tensor.h"

namespace satrap {
namespace {

template <typename Body>
void ForEach(const Tensor& tensor, Body body) {
  for (int64_t i = 0; i < tensor.rows; ++i) {
    for (int64_t c = 0; c < tensor.cols; ++c) body(i, c);
  }
}

double At(const Tensor& tensor, int64_t row, int64_t col) { return FloatsOf(tensor, row)[col]; }

void Put(const GradientTarget& target, int64_t row, int64_t col, double value) {
  float* to = FloatsOf(target.tensor, row) + col;
  *to = static_cast<float>(target.add ? *to + value : value);
}

// Element (r, c) of matrix m of sample i, after the transposition, if there is one.
double Element(const SampleMatrices& a, int64_t i, int64_t m, int64_t r, int64_t c) {
  return At(a.tensor, i, m * a.step + (a.transposed ? c * a.stride + r : r * a.stride + c));
}

// The sum of f(c) over the group of `width` columns to which column c belongs.
template <typename F>
double GroupSum(int64_t c, int64_t width, F f) {
  double sum = 0;
  for (int64_t k = c / width * width; k < (c / width + 1) * width; ++k) sum += f(k);
  return sum;
}

}  // namespace

void ReferenceInteractionBackend::Scale(float factor, Tensor x, Tensor y, bool add) {
  ForEach(y, [&](int64_t i, int64_t c) { Put({y, add}, i, c, factor * At(x, i, c)); });
}

void ReferenceInteractionBackend::Multiply(Tensor a, Tensor b, Tensor y, bool add) {
  const bool whole_rows = b.rows == a.rows && b.cols == 1;
  const bool same = b.rows == a.rows && b.cols == a.cols;
  ForEach(y, [&](int64_t i, int64_t c) {
    const double factor = whole_rows ? At(b, i, 0) : At(b, same ? i : 0, c % b.cols);
    Put({y, add}, i, c, At(a, i, c) * factor);
  });
}

void ReferenceInteractionBackend::Transpose(Tensor x, int64_t width, Tensor y, bool add) {
  const int64_t height = x.cols / width;
  ForEach(y, [&](int64_t i, int64_t c) {
    Put({y, add}, i, c, At(x, i, c % height * width + c / height));
  });
}

void ReferenceInteractionBackend::BatchedProduct(const SampleMatrices& a, const SampleMatrices& b,
                                                 int64_t count, float scale,
                                                 const SampleMatrices& y, bool add) {
  const int64_t inner = a.transposed ? a.rows : a.cols;
  for (int64_t i = 0; i < y.tensor.rows; ++i) {
    for (int64_t m = 0; m < count; ++m) {
      for (int64_t r = 0; r < y.rows; ++r) {
        for (int64_t c = 0; c < y.cols; ++c) {
          double sum = 0;
          for (int64_t k = 0; k < inner; ++k)
            sum += Element(a, i, m, r, k) * Element(b, i, m, k, c);
          Put({y.tensor, add}, i, m * y.step + r * y.stride + c, scale * sum);
        }
      }
    }
  }
}

void ReferenceInteractionBackend::PairDots(absl::Span<const Tensor> xs,
                                           absl::Span<const PairTerm> terms, int64_t dim,
                                           Tensor y) {
  ForEach(y, [&](int64_t i, int64_t t) {
    double sum = 0;
    for (int64_t d = 0; d < dim; ++d) {
      sum += At(xs[terms[t].a], i, terms[t].a_column + d) *
             At(xs[terms[t].b], i, terms[t].b_column + d);
    }
    Put({y, false}, i, t, sum);
  });
}

void ReferenceInteractionBackend::PairDotsGrad(absl::Span<const Tensor> xs,
                                               absl::Span<const PairTerm> terms, int64_t dim,
                                               Tensor dy, absl::Span<const GradientTarget> dxs) {
  for (const GradientTarget& dx : dxs) {
    if (!dx.wanted() || dx.add) continue;
    ForEach(dx.tensor, [&](int64_t i, int64_t c) { Put(dx, i, c, 0); });
  }
  ForEach(dy, [&](int64_t i, int64_t t) {
    const PairTerm& term = terms[t];
    for (int64_t d = 0; d < dim; ++d) {
      if (dxs[term.a].wanted()) {
        Put({dxs[term.a].tensor, true}, i, term.a_column + d,
            At(dy, i, t) * At(xs[term.b], i, term.b_column + d));
      }
      if (dxs[term.b].wanted()) {
        Put({dxs[term.b].tensor, true}, i, term.b_column + d,
            At(dy, i, t) * At(xs[term.a], i, term.a_column + d));
      }
    }
  });
}

void ReferenceInteractionBackend::BiInteraction(absl::Span<const Tensor> xs, Tensor s, Tensor y) {
  ForEach(y, [&](int64_t i, int64_t d) {
    double sum = 0;
    double squares = 0;
    for (const Tensor& x : xs) {
      sum += At(x, i, d);
      squares += At(x, i, d) * At(x, i, d);
    }
    Put({s, false}, i, d, sum);
    Put({y, false}, i, d, (sum * sum - squares) / 2);
  });
}

void ReferenceInteractionBackend::BiInteractionGrad(absl::Span<const Tensor> xs, Tensor s,
                                                    Tensor dy,
                                                    absl::Span<const GradientTarget> dxs) {
  for (size_t f = 0; f < xs.size(); ++f) {
    if (!dxs[f].wanted()) continue;
    ForEach(dy, [&](int64_t i, int64_t d) {
      Put(dxs[f], i, d, At(dy, i, d) * (At(s, i, d) - At(xs[f], i, d)));
    });
  }
}

void ReferenceInteractionBackend::Softmax(Tensor x, int64_t width, Tensor y) {
  ForEach(y, [&](int64_t i, int64_t c) {
    // exp(x_c) / sum exp(x_k). Only differences are passed to exp, so no maximum is needed.
    const double sum =
        GroupSum(c, width, [&](int64_t k) { return std::exp(At(x, i, k) - At(x, i, c)); });
    Put({y, false}, i, c, 1 / sum);
  });
}

void ReferenceInteractionBackend::SoftmaxGrad(Tensor y, Tensor dy, int64_t width,
                                              GradientTarget dx) {
  if (!dx.wanted()) return;
  ForEach(y, [&](int64_t i, int64_t c) {
    const double sum = GroupSum(c, width, [&](int64_t k) { return At(dy, i, k) * At(y, i, k); });
    Put(dx, i, c, At(y, i, c) * (At(dy, i, c) - sum));
  });
}

void ReferenceInteractionBackend::Normalize(Normalization kind, Tensor x, int64_t width,
                                            float epsilon, Tensor y, Tensor inverse) {
  const double count = static_cast<double>(width);
  const bool layer = kind == Normalization::kLayer;
  ForEach(y, [&](int64_t i, int64_t c) {
    const double mean =
        layer ? GroupSum(c, width, [&](int64_t k) { return At(x, i, k); }) / count : 0;
    const double squares =
        GroupSum(c, width, [&](int64_t k) { return std::pow(At(x, i, k) - mean, 2); });
    const double root = std::sqrt((layer ? squares / count : squares) + epsilon);
    Put({inverse, false}, i, c / width, 1 / root);
    Put({y, false}, i, c, (At(x, i, c) - mean) / root);
  });
}

void ReferenceInteractionBackend::NormalizeGrad(Normalization kind, Tensor y, Tensor inverse,
                                                Tensor dy, int64_t width, GradientTarget dx) {
  if (!dx.wanted()) return;
  const double count = static_cast<double>(width);
  const bool layer = kind == Normalization::kLayer;
  ForEach(y, [&](int64_t i, int64_t c) {
    const double sum = GroupSum(c, width, [&](int64_t k) { return At(dy, i, k); });
    const double dot = GroupSum(c, width, [&](int64_t k) { return At(dy, i, k) * At(y, i, k); });
    const double shift = layer ? (sum + At(y, i, c) * dot) / count : At(y, i, c) * dot;
    Put(dx, i, c, At(inverse, i, c / width) * (At(dy, i, c) - shift));
  });
}

}  // namespace satrap
