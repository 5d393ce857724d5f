// Compares tables with semantics GLOBAL with a reference in double. The reference updates every row
// in every step, as PyTorch and Keras do with dense gradients.

#include <algorithm>
#include <cmath>
#include <vector>

#include "common/base/check.h"
#include "common/numeric/random.h"
#include "embedding_ps/table/global_testing.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

constexpr int kSteps = 100;
constexpr double kBeta1 = 0.9, kBeta2 = 0.999;  // the defaults of proto/table.proto

// One value of the reference. The formulas are those of proto/table.proto.
struct Reference {
  double w = 0;
  double a = 0, b = 0, c = 0;  // state, by rule
  int t = 0;

  void Begin(const SparseOptimizerConfig& config, double rate) {
    if (config.has_decayed_adagrad()) a = config.decayed_adagrad().initial_accumulator();
    if (config.has_adagrad()) a = config.adagrad().initial_accumulator();
    if (config.has_ftrl()) b = -w * (1 / rate);  // beta 1, n 0: w(z) is the initial value
  }

  void Step(const SparseOptimizerConfig& config, double rate, double g) {
    ++t;
    const double correction1 = 1 - std::pow(kBeta1, t), correction2 = 1 - std::pow(kBeta2, t);
    const auto moments = [&] {
      a = kBeta1 * a + (1 - kBeta1) * g;
      b = kBeta2 * b + (1 - kBeta2) * g * g;
      return a / correction1;
    };
    switch (config.kind_case()) {
      case SparseOptimizerConfig::kSgd:
        w -= rate * g;
        break;
      case SparseOptimizerConfig::kMomentum:
        if (config.momentum().form() == OptimizerConfig::Momentum::RATE_OUTSIDE) {
          a = 0.9 * a + g;
          w -= rate * a;
        } else {
          a = 0.9 * a - rate * g;
          w += a;
        }
        break;
      case SparseOptimizerConfig::kNesterov: {
        const double n = 0.9 * a - rate * g;
        w += 1.9 * n - 0.9 * a;
        a = n;
        break;
      }
      case SparseOptimizerConfig::kSgdL1: {
        const double l1 = config.sgd_l1().l1();
        a += rate * l1;  // all weights owe it
        const double z = w - rate * g;
        if (z > 0) w = std::max(0.0, z - (a + b));
        if (z < 0) w = std::min(0.0, z + (a - b));
        if (z == 0) w = 0;
        b += w - z;
        break;
      }
      case SparseOptimizerConfig::kAdagrad:
        a += g * g;
        w -= rate * g / (std::sqrt(a) + 1e-10);
        break;
      case SparseOptimizerConfig::kDecayedAdagrad:
        a = config.decayed_adagrad().decay() * a + g * g;
        w -= rate * g / (std::sqrt(a) + 1e-10);
        break;
      case SparseOptimizerConfig::kRmsprop: {
        const double mu = config.rmsprop().momentum();
        a = 0.9 * a + 0.1 * g * g;
        b = config.rmsprop().centred() ? 0.9 * b + 0.1 * g : 0;
        c = mu * c + rate * g / (std::sqrt(std::max(0.0, a - b * b)) + 1e-4);
        w -= c;
        break;
      }
      case SparseOptimizerConfig::kAdadelta: {
        a = 0.95 * a + 0.05 * g * g;
        const double d = g * std::sqrt(b + 1e-6) / std::sqrt(a + 1e-6);
        b = 0.95 * b + 0.05 * d * d;
        w -= rate * d;
        break;
      }
      case SparseOptimizerConfig::kAdam: {
        const double m = moments();
        w -= rate * m / (std::sqrt(b / correction2) + 1e-8);
        break;
      }
      case SparseOptimizerConfig::kAmsgrad: {
        const double m = moments();
        c = std::max(c, b);
        w -= rate * m / (std::sqrt(c / correction2) + 1e-8);
        break;
      }
      case SparseOptimizerConfig::kAdamw: {
        const double m = moments();
        w -= rate * (m / (std::sqrt(b / correction2) + 1e-8) + 0.01 * w);
        break;
      }
      case SparseOptimizerConfig::kFtrl: {
        const double n = a + g * g;
        b += g - (std::sqrt(n) - std::sqrt(a)) / rate * w;
        a = n;
        w = -b / ((1 + std::sqrt(n)) / rate);
        break;
      }
      case SparseOptimizerConfig::kFtml: {
        const double beta1 = 0.6;
        a = kBeta2 * a + (1 - kBeta2) * g * g;
        const double d = (1 - std::pow(beta1, t)) / rate * (std::sqrt(a / correction2) + 1e-8);
        b = beta1 * b + (1 - beta1) * g - (d - beta1 * c) * w;
        c = d;
        w = -b / d;
        break;
      }
      default:
        CHECK(false) << "no reference of this kind";
    }
  }
};

class GlobalReferenceTest : public testing::TestWithParam<Case> {};

TEST_P(GlobalReferenceTest, FollowsAReferenceThatStepsEveryRowInEveryStep) {
  const TableConfig config = ConfigOf(GetParam());
  const SegmentConfig& segment = config.segments(0);
  const auto table = NewTable(config);
  const std::vector<uint64_t> keys = AllKeys();
  if (GetParam().all_exist) table->CreateRows(keys);
  std::vector<Reference> wanted(kRows * kDim);
  const std::vector<float> initial = ValuesOf(*table, keys);
  for (size_t i = 0; i < wanted.size(); ++i) {
    wanted[i].w = initial[i];
    wanted[i].Begin(segment.optimizer(), segment.optimizer().learning_rate());
  }
  SplitMix64 random(3);
  for (int step = 0; step < kSteps; ++step) {
    // The larger r is, the fewer steps hold row r. The last row does not appear before step 60.
    std::vector<uint64_t> held;
    std::vector<float> gradients;
    std::vector<double> gradient_of(wanted.size());
    for (int row = 0; row < kRows; ++row) {
      if (random.NextDouble() > 2.0 / (2 + row) || (row == kRows - 1 && step < 60)) continue;
      held.push_back(keys[row]);
      for (int d = 0; d < kDim; ++d) {
        const auto g = static_cast<float>(random.NextDouble() * 2 - 1);
        gradients.push_back(g * 8);
        gradient_of[row * kDim + d] = g;
      }
    }
    StepContext context;
    context.step = step;
    context.normalizer = 8;
    if (!GetParam().constant_rate) {
      context.learning_rate_factor = 0.5f + static_cast<float>(random.NextDouble());
    }
    table->Update(held, gradients, {}, context);
    Sweep(table.get(), context);
    const double rate =
        static_cast<double>(segment.optimizer().learning_rate()) * context.learning_rate_factor;
    for (int row = 0; row < kRows; ++row) {
      double norm = 0;
      double g[kDim];
      for (int d = 0; d < kDim; ++d) {
        g[d] = gradient_of[row * kDim + d];
        if (segment.l2_mode() == SegmentConfig::DENSE) {
          g[d] += segment.l2() * wanted[row * kDim + d].w;
        }
        norm += g[d] * g[d];
      }
      norm = std::sqrt(norm);
      const double clip = segment.gradient_clip_norm();
      for (int d = 0; d < kDim; ++d) {
        Reference& value = wanted[row * kDim + d];
        value.Step(segment.optimizer(), rate, clip > 0 && norm > clip ? g[d] * clip / norm : g[d]);
        const double bound = segment.weight_bound();
        if (bound > 0) value.w = std::clamp(value.w, -bound, bound);
      }
    }
    const std::vector<float> got = ValuesOf(*table, keys);
    for (size_t i = 0; i < wanted.size(); ++i) {
      ASSERT_NEAR(got[i], wanted[i].w, 2e-6) << "row " << i / kDim << " after step " << step;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, GlobalReferenceTest,
    testing::Values(Case{"sgd", "sgd {}"}, Case{"adagrad", "adagrad {}"},
                    Case{"ftrl", "ftrl {}", false, /*constant_rate=*/true},
                    Case{"decayed_adagrad", "decayed_adagrad {}"}, Case{"adadelta", "adadelta {}"},
                    Case{"rmsprop", "rmsprop { epsilon: 1e-4 }"},
                    Case{"rmsprop_centred", "rmsprop { epsilon: 1e-4 centred: true }"},
                    Case{"rmsprop_momentum", "rmsprop { epsilon: 1e-4 momentum: 0.5 }"},
                    Case{"rmsprop_both", "rmsprop { epsilon: 1e-4 momentum: 0.5 centred: true }"},
                    Case{"ftml", "ftml {}", false, /*constant_rate=*/true},
                    Case{"momentum", "momentum {}"},
                    Case{"torch_momentum", "momentum { form: RATE_OUTSIDE }"},
                    Case{"nesterov", "nesterov {}"}, Case{"adam", "adam {}"},
                    Case{"amsgrad", "amsgrad {}"}, Case{"adamw", "adamw {}", /*all_exist=*/true},
                    Case{"sgd_l1", "sgd_l1 { l1: 0.03 }", /*all_exist=*/true},
                    Case{"sgd_dense_l2", "sgd {}", true, false, "l2: 0.3 l2_mode: DENSE"},
                    Case{"adagrad_dense_l2", "adagrad {}", true, false, "l2: 0.3 l2_mode: DENSE"},
                    Case{"adam_dense_l2", "adam {}", true, false, "l2: 0.3 l2_mode: DENSE"},
                    Case{"decayed_adagrad_dense_l2", "decayed_adagrad {}", true, false,
                         "l2: 0.3 l2_mode: DENSE"},
                    Case{"ftml_dense_l2", "ftml {}", true, true, "l2: 0.3 l2_mode: DENSE"},
                    Case{"clipped_and_bounded", "sgd {}", true, false,
                         "l2: 0.3 l2_mode: DENSE gradient_clip_norm: 0.1 weight_bound: 0.4"}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace satrap
