#include "nn_worker/graph/step/gradient_squares.h"

#include <cstddef>

#include "common/base/check.h"
#include "common/numeric/vectorize.h"

namespace satrap {
namespace {

constexpr size_t kVectorLanes = 8;

// Adds the squares to the lanes in order: every kVectorLanes-th square belongs to the same lane.
// REQUIRES: n is a multiple of kVectorLanes
SATRAP_VECTORIZE_SAME_BITS void AddSquares(double scale, double l2, double l1,
                                           const float* __restrict gradient,
                                           const float* __restrict w, size_t n,
                                           double* __restrict lanes) {
  for (size_t i = 0; i < n; i += kVectorLanes) {
    for (size_t lane = 0; lane < kVectorLanes; ++lane) {
      const double value = w[i + lane];
      const double sign = value > 0 ? 1.0 : value < 0 ? -1.0 : 0.0;
      const double g = scale * gradient[i + lane] + l2 * value + l1 * sign;
      lanes[lane] += g * g;
    }
  }
}

}  // namespace

double GradientSquares(float scale, const OptimizerRule& rule, absl::Span<const float> gradient,
                       absl::Span<const float> w) {
  CHECK(gradient.size() == w.size()) << gradient.size() << " != " << w.size();
  double lanes[kVectorLanes] = {};
  const size_t whole = gradient.size() / kVectorLanes * kVectorLanes;
  AddSquares(scale, rule.l2, rule.l1, gradient.data(), w.data(), whole, lanes);
  float last_gradient[kVectorLanes] = {}, last_w[kVectorLanes] = {};
  for (size_t i = whole; i < gradient.size(); ++i) {
    last_gradient[i - whole] = gradient[i];
    last_w[i - whole] = w[i];
  }
  AddSquares(scale, rule.l2, rule.l1, last_gradient, last_w, kVectorLanes, lanes);
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  return sum;
}

}  // namespace satrap
