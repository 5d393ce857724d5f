#include "nn_worker/backend/testing/reference_optimizer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "nn_worker/backend/cpu/host_tensor.h"

namespace satrap::reference {
namespace {

double Sign(double x) { return x > 0 ? 1 : x < 0 ? -1 : 0; }

using States = std::array<double, kMaxOptimizerStates>;

double RmsProp(const OptimizerRule& rule, double lr, double g, double w, States* states) {
  auto& [a, second, third] = *states;
  a = rule.rho * a + (1 - rule.rho) * g * g;
  double square = a;
  if (rule.centred) {
    second = rule.rho * second + (1 - rule.rho) * g;
    square = std::max(0.0, a - second * second);
  }
  const double step = lr * g / (std::sqrt(square + rule.epsilon_in_root) + rule.epsilon);
  if (rule.mu == 0) return w - step;
  double& m = rule.centred ? third : second;
  m = rule.mu * m + step;
  return w - m;
}

double Ftrl(const OptimizerRule& rule, double lr, double g, double w, States* states) {
  if (lr == 0) return w;
  double& z = (*states)[0];
  double& n = (*states)[1];
  n += g * g;
  const double q = (rule.beta + std::sqrt(n)) / lr + rule.lambda2;
  z = g + (w == 0 ? z : -w * q - Sign(w) * rule.lambda1);
  return std::abs(z) <= rule.lambda1 ? 0 : -(z - Sign(z) * rule.lambda1) / q;
}

// Returns the new value of w.
double Updated(const StepControl& control, const OptimizerRule& rule, double lr, double g, double w,
               States* states) {
  auto& [s0, s1, s2] = *states;
  switch (rule.kind) {
    case OptimizerKind::kSgd:
      return w - lr * g;
    case OptimizerKind::kAdagrad:
      s0 += g * g;
      return w - lr * g / (std::sqrt(s0) + rule.epsilon);
    case OptimizerKind::kAdam:
    case OptimizerKind::kAmsGrad: {
      s0 = rule.beta1 * s0 + (1 - rule.beta1) * g;
      s1 = rule.beta2 * s1 + (1 - rule.beta2) * g * g;
      s2 = std::max(s1, s2);
      const double square = rule.kind == OptimizerKind::kAdam ? s1 : s2;
      return w - lr * (s0 / control.correction1) /
                     (std::sqrt(square / control.correction2) + rule.epsilon);
    }
    case OptimizerKind::kMomentumRateInside:
      s0 = rule.mu * s0 - lr * g;
      return w + s0;
    case OptimizerKind::kMomentumRateOutside:
      s0 = rule.mu * s0 + (1 - rule.dampening) * g;
      return w - lr * s0;
    case OptimizerKind::kNesterov: {
      const double before = s0;
      s0 = rule.mu * s0 - lr * g;
      return w + (1 + rule.mu) * s0 - rule.mu * before;
    }
    case OptimizerKind::kRmsProp:
      return RmsProp(rule, lr, g, w, states);
    case OptimizerKind::kAdadelta: {
      s0 = rule.rho * s0 + (1 - rule.rho) * g * g;
      const double d = g * std::sqrt(s1 + rule.epsilon) / std::sqrt(s0 + rule.epsilon);
      s1 = rule.rho * s1 + (1 - rule.rho) * d * d;
      return w - lr * d;
    }
    case OptimizerKind::kFtrl:
      return Ftrl(rule, lr, g, w, states);
    case OptimizerKind::kFtml:
      s0 = rule.beta2 * s0 + (1 - rule.beta2) * g * g;
      return w - lr * (1 - rule.beta1) / control.correction1 * g /
                     (std::sqrt(s0 / control.correction2) + rule.epsilon);
  }
  return w;
}

}  // namespace

void OptimizerStep(const StepControl& control, const OptimizerRule& rule, const Tensor& gradient,
                   const Tensor& w, absl::Span<const Tensor> states) {
  if (control.apply == 0) return;
  const double lr = static_cast<double>(control.learning_rate) * rule.rate_factor;
  for (int64_t c = 0; c < w.cols; ++c) {
    double value = FloatsOf(w)[c];
    const double g = static_cast<double>(FloatsOf(gradient)[c]) * control.scale + rule.l2 * value +
                     rule.l1 * Sign(value);
    value -= lr * rule.weight_decay * value;
    States values = {};
    for (size_t s = 0; s < states.size(); ++s) values[s] = FloatsOf(states[s])[c];
    FloatsOf(w)[c] = static_cast<float>(Updated(control, rule, lr, g, value, &values));
    for (size_t s = 0; s < states.size(); ++s) {
      FloatsOf(states[s])[c] = static_cast<float>(values[s]);
    }
  }
}

std::vector<OptimizerRule> RulesOfEveryKind() {
  std::vector<OptimizerRule> rules;
  const auto add = [&rules](OptimizerKind kind) -> OptimizerRule& {
    OptimizerRule& rule = rules.emplace_back();
    rule.kind = kind;
    rule.l2 = 0.01f;
    rule.epsilon = 1e-3f;
    rule.beta1 = 0.75f;
    rule.beta2 = 0.875f;
    rule.rho = 0.9f;
    return rule;
  };
  for (const OptimizerKind kind :
       {OptimizerKind::kSgd, OptimizerKind::kAdagrad, OptimizerKind::kAdam,
        OptimizerKind::kAdadelta, OptimizerKind::kAmsGrad, OptimizerKind::kFtml}) {
    add(kind);
  }
  add(OptimizerKind::kMomentumRateInside).mu = 0.9f;
  OptimizerRule& outside = add(OptimizerKind::kMomentumRateOutside);
  outside.mu = 0.8f;
  outside.dampening = 0.25f;
  add(OptimizerKind::kNesterov).mu = 0.9f;
  for (const bool centred : {false, true}) {
    for (const float mu : {0.0f, 0.5f}) {
      OptimizerRule& rule = add(OptimizerKind::kRmsProp);
      rule.centred = centred;
      rule.mu = mu;
      // A centred mean square may be near 0, where the root of a rounding error is large.
      rule.epsilon_in_root = centred ? 0.1f : 0;
    }
  }
  for (const float lambda1 : {0.0f, 0.05f}) {
    OptimizerRule& rule = add(OptimizerKind::kFtrl);
    rule.beta = 1;
    rule.lambda1 = lambda1;
    rule.lambda2 = 0.1f;
  }
  // Adds common settings to the kinds whose plain form has separate loops, and to one other kind,
  // whose rule reads w.
  for (const size_t i : {size_t{0}, size_t{1}, size_t{2}, rules.size() - 1}) {
    OptimizerRule rule = rules[i];
    rule.rate_factor = 0.5f;
    rule.l1 = 0.02f;
    rule.weight_decay = 0.1f;
    rules.push_back(rule);
  }
  return rules;
}

}  // namespace satrap::reference
