#include "nn_worker/device/kernels/optimizer_step.h"

#include <initializer_list>

#include "nn_worker/device/kernel.h"
#include "nn_worker/device/kernels/elementwise.h"

namespace satrap {
namespace {

// rule(gradient, w, first, second) on every element, with the arrays that are not null.
template <typename Rule>
SATRAP_DEVICE void UpdateEach(const float* gradient, float* w, float* first, float* second,
                              int64_t count, bool aligned, Rule rule) {
  ForEachGroup(1, GroupsOf(count), [&](int64_t, int64_t g) {
    const int64_t at = g * kGroup, left = count - at;
    const Group gradients = LoadGroup(gradient + at, left, aligned);
    Group values = LoadGroup(w + at, left, aligned), a = {}, b = {};
    if (first != nullptr) a = LoadGroup(first + at, left, aligned);
    if (second != nullptr) b = LoadGroup(second + at, left, aligned);
    for (int i = 0; i < kGroup; ++i) {
      rule(gradients.lane[i], values.lane[i], a.lane[i], b.lane[i]);
    }
    StoreGroup(w + at, values, left, aligned);
    if (first != nullptr) StoreGroup(first + at, a, left, aligned);
    if (second != nullptr) StoreGroup(second + at, b, left, aligned);
  });
}

SATRAP_KERNEL void SgdKernel(OptimizerStep step, const float* gradient, float* w, int64_t count,
                             bool aligned) {
  const StepControl control = *step.control;
  if (control.apply == 0) return;
  UpdateEach(gradient, w, nullptr, nullptr, count, aligned,
             [step, control](float g, float& value, float&, float&) {
               value -= control.learning_rate * (g * control.scale + step.l2 * value);
             });
}

SATRAP_KERNEL void AdagradKernel(OptimizerStep step, float epsilon, const float* gradient, float* w,
                                 float* a, int64_t count, bool aligned) {
  const StepControl control = *step.control;
  if (control.apply == 0) return;
  UpdateEach(gradient, w, a, nullptr, count, aligned,
             [step, control, epsilon](float raw, float& value, float& sum, float&) {
               const float g = raw * control.scale + step.l2 * value;
               sum += g * g;
               value -= control.learning_rate * g / (Sqrt(sum) + epsilon);
             });
}

SATRAP_KERNEL void AdamKernel(OptimizerStep step, AdamConstants adam, const float* gradient,
                              float* w, float* m, float* v, int64_t count, bool aligned) {
  const StepControl control = *step.control;
  if (control.apply == 0) return;
  UpdateEach(gradient, w, m, v, count, aligned,
             [step, control, adam](float raw, float& value, float& mean, float& variance) {
               const float g = raw * control.scale + step.l2 * value;
               mean = adam.beta1 * mean + (1 - adam.beta1) * g;
               variance = adam.beta2 * variance + (1 - adam.beta2) * g * g;
               value -= control.learning_rate * (mean / control.correction1) /
                        (Sqrt(variance / control.correction2) + adam.epsilon);
             });
}

ElementwiseShape FlatShape(int64_t count) { return ShapeOf(1, GroupsOf(count)); }

bool AllAligned(std::initializer_list<const float*> arrays) {
  for (const float* const array : arrays) {
    if (reinterpret_cast<uintptr_t>(array) % sizeof(Group) != 0) return false;
  }
  return true;
}

}  // namespace

void SgdStep(Stream* stream, const OptimizerStep& step, const float* gradient, float* w,
             int64_t count) {
  if (count == 0) return;
  const ElementwiseShape shape = FlatShape(count);
  Launch<SgdKernel>(stream, shape.grid, shape.block, 0, step, gradient, w, count,
                    AllAligned({gradient, w}));
}

void AdagradStep(Stream* stream, const OptimizerStep& step, float epsilon, const float* gradient,
                 float* w, float* a, int64_t count) {
  if (count == 0) return;
  const ElementwiseShape shape = FlatShape(count);
  Launch<AdagradKernel>(stream, shape.grid, shape.block, 0, step, epsilon, gradient, w, a, count,
                        AllAligned({gradient, w, a}));
}

void AdamStep(Stream* stream, const OptimizerStep& step, const AdamConstants& constants,
              const float* gradient, float* w, float* m, float* v, int64_t count) {
  if (count == 0) return;
  const ElementwiseShape shape = FlatShape(count);
  Launch<AdamKernel>(stream, shape.grid, shape.block, 0, step, constants, gradient, w, m, v, count,
                     AllAligned({gradient, w, m, v}));
}

}  // namespace satrap
