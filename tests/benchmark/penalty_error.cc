// Measures how exact the penalty of sgd_l1 is after many steps. One row is in every step, with a
// gradient of 0. Its weight is compared with that of the same rule in double precision, and with
// that of the rule of earlier builds, which kept one f32 sum of all penalties that a row owes.
//
//   penalty_error [--steps=40000000] [--l1=1e-6]
//
// Prints a JSON line for each sign of the weight and each of 8 points in time.

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "common/base/check.h"
#include "common/base/cpu_name.h"
#include "common/flags/flags.h"
#include "common/json/json.h"
#include "embedding_ps/optimizer/sparse_optimizer.h"
#include "proto/benchmark.pb.h"

namespace satrap {
namespace {

struct Flags {
  int64_t steps = 40000000;
  double l1 = 1e-6;

  std::vector<Flag> Table() {
    return {NumberFlag("steps", "N", "without a gradient (default: 40000000)", &steps, 8),
            NumberFlag("l1", "X", "the penalty of a step (default: 1e-6)", &l1, kAboveZero)};
  }
};

// In addition to the weight, the rule of earlier builds keeps the sum of all penalties that the row
// has ever owed, and the sum of those that it has paid.
template <typename T>
struct OneSum {
  T value;
  T owed = 0, paid = 0;

  void Step(T penalty) {
    owed += penalty;
    const T z = value;
    if (z > 0) value = std::max(T{0}, z - (owed + paid));
    if (z < 0) value = std::min(T{0}, z + (owed - paid));
    paid += value - z;
  }
};

void Run(const Flags& flags, float start) {
  SparseOptimizerConfig config;
  config.mutable_sgd_l1()->set_l1(static_cast<float>(flags.l1));
  const auto made = NewSparseOptimizer(config);
  CHECK_OK(made.status());
  const SparseOptimizer& optimizer = **made;
  float value = start;
  std::vector<float> state(optimizer.StateSize(1));
  optimizer.InitState(absl::MakeSpan(state));
  const float penalty = config.sgd_l1().l1();
  OneSum<double> exact{start};
  OneSum<float> before{start};
  StepContext context;
  context.learning_rate = 1;
  for (int64_t step = 0; step < flags.steps; ++step) {
    context.step = step;
    optimizer.Step(context, {0.0f}, absl::MakeSpan(&value, 1), absl::MakeSpan(state));
    exact.Step(penalty);
    before.Step(penalty);
    if ((step + 1) % std::max<int64_t>(flags.steps / 8, 1) != 0) continue;
    const double wanted = start - exact.value;
    const auto error = [&](float got) {
      return std::abs((start - got) - wanted) / std::abs(wanted);
    };
    PenaltyLine line;
    line.set_steps(step + 1);
    line.set_start(start);
    line.set_penalty(wanted);
    line.set_error(error(value));
    line.set_error_of_one_f32_sum(error(before.value));
    line.set_cpu(CpuName());
    PrintJson(line);
  }
}

}  // namespace
}  // namespace satrap

int main(int argc, char** argv) {
  satrap::Flags flags;
  const auto code =
      satrap::TakeProgramFlags(argc, argv, "usage: penalty_error [FLAGS]", flags.Table());
  if (code.has_value()) return *code;
  // The weight begins far enough from 0 that it still pays penalties at the end.
  const auto start = static_cast<float>(1.25 * static_cast<double>(flags.steps) * flags.l1);
  satrap::Run(flags, start);
  satrap::Run(flags, -start);
  return 0;
}
