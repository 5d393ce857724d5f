#include "tests/simulation/sim_row.h"

#include <algorithm>
#include <cmath>

#include "common/base/check.h"

namespace satrap::simulation {
namespace {

constexpr double kBeta1 = 0.9;  // the defaults of proto/table.proto
constexpr double kBeta2 = 0.999;

}  // namespace

SimRow::SimRow() {
  values.fill(kInitialRowValue);
  accumulator.fill(kInitialAccumulator);
}

void SimRow::Step(const WorldShape& shape, const Pull& pull) {
  ++steps;
  const bool first_of_step = pull.step > l2_step;
  if (first_of_step) l2_step = pull.step;
  RowGradient gradient;
  for (int d = 0; d < kRowValues; ++d) {
    gradient[d] = pull.sum[d] / pull.normalizer + (first_of_step ? shape.l2 * values[d] : 0);
  }
  for (int segment = 0; segment < 2; ++segment) {
    const int begin = segment == 0 ? 0 : kEmbeddingDim;
    const int end = segment == 0 ? kEmbeddingDim : kRowValues;
    const double rate = LearningRateOf(shape.optimizers[segment]);
    double squares = 0;
    for (int d = begin; d < end; ++d) squares += gradient[d] * gradient[d];
    const double clip = shape.gradient_clip_norm * pull.share;
    if (shape.gradient_clip_norm > 0 && squares > clip * clip) {
      for (int d = begin; d < end; ++d) gradient[d] *= clip / std::sqrt(squares);
    }
    if (shape.optimizers[segment] == SparseOptimizerConfig::kRowwiseAdagrad) {
      for (int d = begin; d < end; ++d) {
        accumulator[begin] += gradient[d] * gradient[d] / (end - begin);
      }
    }
    for (int d = begin; d < end; ++d) {
      const double g = gradient[d];
      switch (shape.optimizers[segment]) {
        case SparseOptimizerConfig::kSgd:
          values[d] -= rate * g;
          break;
        case SparseOptimizerConfig::kAdagrad:
          accumulator[d] += g * g;
          values[d] -= rate * g / (std::sqrt(accumulator[d]) + kEpsilon);
          break;
        case SparseOptimizerConfig::kRowwiseAdagrad:
          values[d] -= rate * g / (std::sqrt(accumulator[begin]) + kEpsilon);
          break;
        case SparseOptimizerConfig::kAdam:
          first[d] = kBeta1 * first[d] + (1 - kBeta1) * g;
          second[d] = kBeta2 * second[d] + (1 - kBeta2) * g * g;
          values[d] -= rate * first[d] / (1 - std::pow(kBeta1, steps)) /
                       (std::sqrt(second[d] / (1 - std::pow(kBeta2, steps))) + kEpsilon);
          break;
        default:
          CHECK(false) << "worlds have no optimizer of this kind";
      }
    }
  }
  if (shape.weight_bound > 0) {
    for (double& value : values) value = std::clamp(value, -shape.weight_bound, shape.weight_bound);
  }
}

}  // namespace satrap::simulation
