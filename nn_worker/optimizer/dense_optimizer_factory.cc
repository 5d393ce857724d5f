#include "nn_worker/optimizer/dense_optimizer_factory.h"

#include <cmath>
#include <utility>

#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/config/setting_rules.h"
#include "common/learning_rate/learning_rate_schedule.h"

namespace satrap {
namespace {

template <typename Config>
void SetAdamConstants(const Config& config, OptimizerRule* rule) {
  rule->beta1 = config.beta1();
  rule->beta2 = config.beta2();
  rule->epsilon = config.epsilon();
}

DenseOptimizer Adagrad(const OptimizerConfig::Adagrad& config) {
  DenseOptimizer made;
  made.rule.kind = OptimizerKind::kAdagrad;
  made.rule.epsilon = config.epsilon();
  made.states = {{"adagrad.a", config.initial_accumulator()}};
  return made;
}

DenseOptimizer Adam(const OptimizerConfig::Adam& config) {
  DenseOptimizer made;
  made.rule.kind = OptimizerKind::kAdam;
  SetAdamConstants(config, &made.rule);
  made.states = {{"adam.m"}, {"adam.v"}};
  return made;
}

// The two forms keep different values in m, so the name of the state array tells them apart.
DenseOptimizer Momentum(const OptimizerConfig::Momentum& config) {
  const bool inside = config.form() == OptimizerConfig::Momentum::RATE_INSIDE;
  DenseOptimizer made;
  made.rule.kind =
      inside ? OptimizerKind::kMomentumRateInside : OptimizerKind::kMomentumRateOutside;
  made.rule.mu = config.mu();
  made.rule.dampening = config.dampening();
  made.states = {{inside ? "momentum_rate_inside.m" : "momentum_rate_outside.m"}};
  return made;
}

DenseOptimizer Nesterov(const OptimizerConfig::Nesterov& config) {
  DenseOptimizer made;
  made.rule.kind = OptimizerKind::kNesterov;
  made.rule.mu = config.mu();
  made.states = {{"nesterov.m"}};
  return made;
}

DenseOptimizer RmsProp(const OptimizerConfig::RmsProp& config) {
  DenseOptimizer made;
  made.rule.kind = OptimizerKind::kRmsProp;
  made.rule.rho = config.rho();
  (config.epsilon_in_root() ? made.rule.epsilon_in_root : made.rule.epsilon) = config.epsilon();
  made.rule.mu = config.momentum();
  made.rule.centred = config.centred();
  made.states = {{"rmsprop.a"}};
  if (config.centred()) made.states.push_back({"rmsprop.c"});
  if (config.momentum() > 0) made.states.push_back({"rmsprop.m"});
  return made;
}

DenseOptimizer Adadelta(const OptimizerConfig::Adadelta& config) {
  DenseOptimizer made;
  made.rule.kind = OptimizerKind::kAdadelta;
  made.rule.rho = config.rho();
  made.rule.epsilon = config.epsilon();
  made.states = {{"adadelta.a"}, {"adadelta.u"}};
  return made;
}

DenseOptimizer AmsGrad(const OptimizerConfig::AmsGrad& config) {
  DenseOptimizer made;
  made.rule.kind = OptimizerKind::kAmsGrad;
  SetAdamConstants(config, &made.rule);
  made.states = {{"amsgrad.m"}, {"amsgrad.v"}, {"amsgrad.x"}};
  return made;
}

DenseOptimizer AdamW(const OptimizerConfig::AdamW& config) {
  DenseOptimizer made;
  made.rule.kind = OptimizerKind::kAdam;
  SetAdamConstants(config, &made.rule);
  made.rule.weight_decay = config.weight_decay();
  made.states = {{"adamw.m"}, {"adamw.v"}};
  return made;
}

DenseOptimizer Ftrl(const OptimizerConfig::Ftrl& config) {
  DenseOptimizer made;
  made.rule.kind = OptimizerKind::kFtrl;
  made.rule.beta = config.beta();
  made.rule.lambda1 = config.lambda1();
  made.rule.lambda2 = config.lambda2();
  made.states = {{"ftrl.z"}, {"ftrl.n", config.initial_accumulator()}};
  return made;
}

DenseOptimizer Ftml(const OptimizerConfig::Ftml& config) {
  DenseOptimizer made;
  made.rule.kind = OptimizerKind::kFtml;
  SetAdamConstants(config, &made.rule);
  made.states = {{"ftml.v"}};
  return made;
}

DenseOptimizer OfKind(const DenseOptimizerConfig& config) {
  switch (config.kind_case()) {
    case DenseOptimizerConfig::kSgd:
      return {};
    case DenseOptimizerConfig::kAdagrad:
      return Adagrad(config.adagrad());
    case DenseOptimizerConfig::kMomentum:
      return Momentum(config.momentum());
    case DenseOptimizerConfig::kNesterov:
      return Nesterov(config.nesterov());
    case DenseOptimizerConfig::kRmsprop:
      return RmsProp(config.rmsprop());
    case DenseOptimizerConfig::kAdadelta:
      return Adadelta(config.adadelta());
    case DenseOptimizerConfig::kAmsgrad:
      return AmsGrad(config.amsgrad());
    case DenseOptimizerConfig::kAdamw:
      return AdamW(config.adamw());
    case DenseOptimizerConfig::kFtrl:
      return Ftrl(config.ftrl());
    case DenseOptimizerConfig::kFtml:
      return Ftml(config.ftml());
    case DenseOptimizerConfig::kAdam:
    case DenseOptimizerConfig::KIND_NOT_SET:
      break;
  }
  return Adam(config.adam());
}

// 1 - beta^t with t = step + 1. For a rule without a correction, beta is 0 and the result is 1.
float Correction(float beta, int64_t step) {
  const double t = static_cast<double>(step) + 1;
  return static_cast<float>(1 - std::pow(static_cast<double>(beta), t));
}

}  // namespace

absl::StatusOr<DenseOptimizer> NewDenseOptimizer(const DenseOptimizerConfig& config) {
  RETURN_IF_ERROR(CheckConfig(config, "dense_optimizer."));
  DenseOptimizer optimizer = OfKind(config);
  optimizer.rule.l2 = config.l2();
  CHECK(static_cast<int>(optimizer.states.size()) == NumStates(optimizer.rule));
  return optimizer;
}

StepPlan PlanOf(const DenseOptimizerConfig& config, const DenseOptimizer& optimizer,
                const DenseStep& step, const DenseStart& start) {
  double rate =
      config.learning_rate() * LearningRateFactor(config.learning_rate_schedule(), step.step);
  if (start.warmup_steps > 0) {
    LearningRateSchedule warmup;
    warmup.set_warmup_steps(start.warmup_steps);
    rate *= LearningRateFactor(warmup, step.step);
  }
  const int64_t state_step = step.step + start.steps_before;
  StepPlan plan;
  plan.step = static_cast<uint64_t>(step.step);
  plan.learning_rate = static_cast<float>(rate * step.learning_rate_factor);
  plan.correction1 = Correction(optimizer.rule.beta1, state_step);
  plan.correction2 = Correction(optimizer.rule.beta2, state_step);
  plan.global_batch_size = step.global_batch_size;
  return plan;
}

}  // namespace satrap
