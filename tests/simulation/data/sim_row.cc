#include "tests/simulation/data/sim_row.h"

#include <algorithm>
#include <cmath>

#include "common/base/check.h"

namespace satrap::simulation {
namespace {

constexpr double kBeta1 = 0.9;  // the defaults of proto/table.proto
constexpr double kBeta2 = 0.999;

struct Values {
  int begin, end;
};
constexpr Values kSegments[] = {{0, kEmbeddingDim}, {kEmbeddingDim, kRowValues}};

}  // namespace

SimRow::SimRow() {
  values.fill(kInitialRowValue);
  accumulator.fill(kInitialAccumulator);
}

RowGradient SimRow::Gradient(const WorldShape& shape, const Pull& pull) const {
  const double l2 = shape.dense_l2 || (pull.held && pull.step > l2_step) ? shape.l2 : 0;
  RowGradient gradient;
  for (int d = 0; d < kRowValues; ++d) {
    gradient[d] = pull.sum[d] / pull.normalizer + l2 * values[d];
  }
  for (const auto& [begin, end] : kSegments) {
    double squares = 0;
    for (int d = begin; d < end; ++d) squares += gradient[d] * gradient[d];
    const double clip = shape.gradient_clip_norm * pull.share;
    if (shape.gradient_clip_norm > 0 && squares > clip * clip) {
      for (int d = begin; d < end; ++d) gradient[d] *= clip / std::sqrt(squares);
    }
  }
  return gradient;
}

void SimRow::Step(const WorldShape& shape, const Pull& pull) {
  ++steps;
  RowGradient gradient = Gradient(shape, pull);
  for (double& g : gradient) g *= pull.clip_factor;
  if (pull.held) l2_step = std::max(l2_step, pull.step);
  for (int segment = 0; segment < 2; ++segment) {
    const auto [begin, end] = kSegments[segment];
    const double rate = pull.rate * LearningRateOf(shape.optimizers[segment]);
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

double StepTable(const WorldShape& shape, const std::map<uint64_t, RowGradient>& sums,
                 const StepOfRows& step, std::map<uint64_t, SimRow>* rows) {
  double squares = DenseSquares(shape, static_cast<uint64_t>(step.step));
  for (const auto& [key, sum] : sums) {
    const auto [at, created] = rows->try_emplace(key);
    // A new row is treated as if it had existed from the beginning.
    if (created && shape.global) at->second.steps = static_cast<int>(step.step);
  }
  if (shape.frozen) return squares;
  std::map<uint64_t, SimRow::Pull> pulls;
  for (const auto& [key, row] : *rows) {
    const auto held = sums.find(key);
    const bool is_held = held != sums.end();
    if (!is_held && !shape.global) continue;
    const SimRow::Pull pull = {is_held ? held->second : RowGradient{},
                               step.normalizer,
                               /*share=*/1,
                               step.step,
                               is_held,
                               step.rate};
    for (const double g : row.Gradient(shape, pull)) squares += g * g;
    pulls.emplace(key, pull);
  }
  const double norm = std::sqrt(squares);
  const bool clips = shape.step_clip_norm > 0 && norm > shape.step_clip_norm;
  for (auto& [key, pull] : pulls) {
    if (clips) pull.clip_factor = shape.step_clip_norm / norm;
    rows->at(key).Step(shape, pull);
  }
  return squares;
}

}  // namespace satrap::simulation
