#include "nn_worker/device/kernels/optimizer_step.h"

#include "common/numeric/optimizer_formulas.h"
#include "nn_worker/device/kernel.h"
#include "nn_worker/device/kernels/elementwise.h"
#include "nn_worker/device/kernels/value_access.h"

namespace satrap {
namespace {

SATRAP_DEVICE inline float Sign(float x) { return x > 0 ? 1.0f : x < 0 ? -1.0f : 0.0f; }

// The values that a rule reads: the control, the rule's constants and its learning rate.
struct Step {
  StepControl control;
  OptimizerRule rule;
  float lr;
};

SATRAP_DEVICE inline formula::AdamConstants AdamConstantsOf(const Step& step) {
  return {step.lr,           step.rule.beta1,          step.rule.beta2,
          step.rule.epsilon, step.control.correction1, step.control.correction2};
}

// Each of these structs updates a value `w` and its states a, b, c by the normalised gradient g.
struct Sgd {
  SATRAP_DEVICE static void Update(const Step& step, float g, float& w, float&, float&, float&) {
    formula::Sgd(step.lr, g, w);
  }
};

struct Adagrad {
  SATRAP_DEVICE static void Update(const Step& step, float g, float& w, float& a, float&, float&) {
    formula::Adagrad(step.lr, step.rule.epsilon, g, w, a);
  }
};

struct Adam {
  SATRAP_DEVICE static void Update(const Step& step, float g, float& w, float& m, float& v,
                                   float&) {
    formula::Adam(AdamConstantsOf(step), g, w, m, v);
  }
};

struct MomentumRateInside {
  SATRAP_DEVICE static void Update(const Step& step, float g, float& w, float& m, float&, float&) {
    formula::MomentumRateInside(step.lr, step.rule.mu, g, w, m);
  }
};

struct MomentumRateOutside {
  SATRAP_DEVICE static void Update(const Step& step, float g, float& w, float& m, float&, float&) {
    formula::MomentumRateOutside(step.lr, step.rule.mu, 1 - step.rule.dampening, g, w, m);
  }
};

struct Nesterov {
  SATRAP_DEVICE static void Update(const Step& step, float g, float& w, float& m, float&, float&) {
    formula::Nesterov(step.lr, step.rule.mu, g, w, m);
  }
};

struct RmsProp {
  SATRAP_DEVICE static void Update(const Step& step, float g, float& w, float& a, float& second,
                                   float& third) {
    const OptimizerRule& rule = step.rule;
    a = rule.rho * a + (1 - rule.rho) * g * g;
    float square = a;
    if (rule.centred) {
      second = rule.rho * second + (1 - rule.rho) * g;
      square = a - second * second;
      if (square < 0) square = 0;  // by rounding; a NaN stays one
    }
    float change = step.lr * g / (Sqrt(square + rule.epsilon_in_root) + rule.epsilon);
    if (rule.mu > 0) {
      float& m = rule.centred ? third : second;
      m = rule.mu * m + change;
      change = m;
    }
    w -= change;
  }
};

struct Adadelta {
  SATRAP_DEVICE static void Update(const Step& step, float g, float& w, float& a, float& u,
                                   float&) {
    formula::Adadelta(step.lr, step.rule.rho, step.rule.epsilon, g, w, a, u);
  }
};

struct AmsGrad {
  SATRAP_DEVICE static void Update(const Step& step, float g, float& w, float& m, float& v,
                                   float& largest) {
    formula::AmsGrad(AdamConstantsOf(step), g, w, m, v, largest);
  }
};

// cpu_optimizer.cc explains this form of the rule.
struct Ftrl {
  SATRAP_DEVICE static void Update(const Step& step, float g, float& w, float& z, float& n,
                                   float&) {
    // A rate of 0 changes nothing, and the formula would divide by it.
    if (step.lr == 0) return;
    const float lambda1 = step.rule.lambda1, sign = Sign(w);
    n += g * g;
    const float quadratic = (step.rule.beta + Sqrt(n)) / step.lr + step.rule.lambda2;
    z = (sign == 0 ? z : -w * quadratic - sign * lambda1) + g;
    if (w != w) return;
    if (sign != 0 && -sign * z > lambda1) {
      w -= g / quadratic;
    } else {
      w = (z > lambda1 ? lambda1 - z : z < -lambda1 ? -lambda1 - z : 0.0f) / quadratic;
    }
  }
};

struct Ftml {
  SATRAP_DEVICE static void Update(const Step& step, float g, float& w, float& v, float&, float&) {
    const float rate = step.lr * (1 - step.rule.beta1) / step.control.correction1;
    formula::Ftml(rate, step.rule.beta2, step.rule.epsilon, step.control.correction2, g, w, v);
  }
};

SATRAP_DEVICE inline int64_t EndOf(const RoundedWeights& copy) {
  return copy.begin + copy.values.rows * copy.values.cols;
}

// Stores a group of w, which begins at index `at` of w, in the copy. Each parameter begins at the
// start of a group, so the values of a group belong to one parameter, or to the gap between it and
// the next.
SATRAP_DEVICE inline void StoreRounded(const RoundedWeights& copy, int64_t at, const Group& group) {
  const Values& values = copy.values;
  const int64_t first = at - copy.begin;
  int64_t row = first / values.cols, col = first - row * values.cols;
  if (col % kGroup == 0 && col + kGroup <= values.cols) return StoreGroup(values, row, col, group);
  for (int i = 0; i < kGroup && row < values.rows; ++i) {
    StoreValue(values, row, col, group.lane[i]);
    if (++col < values.cols) continue;
    col = 0;
    ++row;
  }
}

// There is a kernel for each rule, so that the loop has no branch by kind. Testing for a null array
// is cheap, because all threads take the same branch.
template <typename Rule>
SATRAP_KERNEL void StepKernel(const StepControl* control, OptimizerRule rule,
                              OptimizerArrays arrays, bool aligned) {
  const Step step = {*control, rule, control->learning_rate * rule.rate_factor};
  // This is decided on the device, because the host enqueues the step before it can know whether
  // the step applies.
  if (step.control.apply == 0) return;
  int64_t copy = 0;  // the first copy that does not end before the thread's next group
  ForEachGroup(1, GroupsOf(arrays.count), [&](int64_t, int64_t group) {
    const int64_t at = group * kGroup, left = arrays.count - at;
    const Group gradients = LoadGroup(arrays.gradient + at, left, aligned);
    Group values = LoadGroup(arrays.w + at, left, aligned), states[kMaxOptimizerStates] = {};
    for (int s = 0; s < kMaxOptimizerStates; ++s) {
      if (arrays.states[s] != nullptr) states[s] = LoadGroup(arrays.states[s] + at, left, aligned);
    }
    for (int i = 0; i < kGroup; ++i) {
      float& w = values.lane[i];
      float g = gradients.lane[i] * step.control.scale + rule.l2 * w;
      // The gradient is unscaled before L1, L2 and decay are applied, so they do not depend on the
      // loss scale.
      if (rule.l1 != 0) g += rule.l1 * Sign(w);
      if (rule.weight_decay != 0) w -= step.lr * rule.weight_decay * w;
      Rule::Update(step, g, w, states[0].lane[i], states[1].lane[i], states[2].lane[i]);
    }
    StoreGroup(arrays.w + at, values, left, aligned);
    for (int s = 0; s < kMaxOptimizerStates; ++s) {
      if (arrays.states[s] != nullptr) StoreGroup(arrays.states[s] + at, states[s], left, aligned);
    }
    while (copy < arrays.num_copies && EndOf(arrays.copies[copy]) <= at) ++copy;
    if (copy == arrays.num_copies || arrays.copies[copy].begin > at) return;
    StoreRounded(arrays.copies[copy], at, values);
  });
}

SATRAP_KERNEL void AverageKernel(const StepControl* control, float decay, const float* w,
                                 float* average, int64_t count, bool aligned) {
  if (control->apply == 0) return;
  const float kept = AverageDecay(decay, control->step);
  ForEachGroup(1, GroupsOf(count), [&](int64_t, int64_t group) {
    const int64_t at = group * kGroup, left = count - at;
    const Group values = LoadGroup(w + at, left, aligned);
    Group averages = LoadGroup(average + at, left, aligned);
    for (int i = 0; i < kGroup; ++i) {
      averages.lane[i] = kept * averages.lane[i] + (1 - kept) * values.lane[i];
    }
    StoreGroup(average + at, averages, left, aligned);
  });
}

bool Aligned(const float* array) {  // true for null, too
  return reinterpret_cast<uintptr_t>(array) % sizeof(Group) == 0;
}

// The network aligns its arrays, but those of other callers may begin anywhere.
template <typename Rule>
void LaunchStep(DeviceStream* stream, const StepControl* control, const OptimizerRule& rule,
                const OptimizerArrays& arrays) {
  const ElementwiseShape shape = ShapeOf(1, GroupsOf(arrays.count));
  bool aligned = Aligned(arrays.gradient) && Aligned(arrays.w);
  for (const float* const state : arrays.states) aligned = aligned && Aligned(state);
  Launch<StepKernel<Rule>>(stream, shape.grid, shape.block, 0, control, rule, arrays, aligned);
}

}  // namespace

void OptimizerStep(DeviceStream* stream, const StepControl* control, const OptimizerRule& rule,
                   const OptimizerArrays& arrays) {
  if (arrays.count == 0) return;
  switch (rule.kind) {
    case OptimizerKind::kSgd:
      return LaunchStep<Sgd>(stream, control, rule, arrays);
    case OptimizerKind::kAdagrad:
      return LaunchStep<Adagrad>(stream, control, rule, arrays);
    case OptimizerKind::kAdam:
      return LaunchStep<Adam>(stream, control, rule, arrays);
    case OptimizerKind::kMomentumRateInside:
      return LaunchStep<MomentumRateInside>(stream, control, rule, arrays);
    case OptimizerKind::kMomentumRateOutside:
      return LaunchStep<MomentumRateOutside>(stream, control, rule, arrays);
    case OptimizerKind::kNesterov:
      return LaunchStep<Nesterov>(stream, control, rule, arrays);
    case OptimizerKind::kRmsProp:
      return LaunchStep<RmsProp>(stream, control, rule, arrays);
    case OptimizerKind::kAdadelta:
      return LaunchStep<Adadelta>(stream, control, rule, arrays);
    case OptimizerKind::kAmsGrad:
      return LaunchStep<AmsGrad>(stream, control, rule, arrays);
    case OptimizerKind::kFtrl:
      return LaunchStep<Ftrl>(stream, control, rule, arrays);
    case OptimizerKind::kFtml:
      return LaunchStep<Ftml>(stream, control, rule, arrays);
  }
}

void AverageStep(DeviceStream* stream, const StepControl* control, float decay, const float* w,
                 float* average, int64_t count) {
  if (count == 0) return;
  const ElementwiseShape shape = ShapeOf(1, GroupsOf(count));
  Launch<AverageKernel>(stream, shape.grid, shape.block, 0, control, decay, w, average, count,
                        Aligned(w) && Aligned(average));
}

}  // namespace satrap
