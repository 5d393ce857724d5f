#include "nn_worker/device/kernels/optimizer_step.h"

#include "nn_worker/device/kernel.h"
#include "nn_worker/device/kernels/elementwise.h"

namespace satrap {
namespace {

constexpr int kN = kVecLanes<float>;

// rule(gradient, w, first, second) on every element, with the arrays that are not null.
template <typename Rule>
SATRAP_DEVICE void UpdateEach(const float* gradient, float* w, float* first, float* second,
                              int64_t count, Rule rule) {
  ForEachGroup(1, (count + kN - 1) / kN, [&](int64_t, int64_t g) {
    const int64_t at = g * kN;
    if (at + kN > count) {
      float none = 0;
      for (int64_t i = at; i < count; ++i) {
        rule(gradient[i], w[i], first != nullptr ? first[i] : none,
             second != nullptr ? second[i] : none);
      }
      return;
    }
    const auto gradients = LoadVec<kN>(gradient + at);
    auto values = LoadVec<kN>(w + at);
    Vec<float, kN> a = {}, b = {};
    if (first != nullptr) a = LoadVec<kN>(first + at);
    if (second != nullptr) b = LoadVec<kN>(second + at);
    for (int i = 0; i < kN; ++i) {
      rule(gradients.lane[i], values.lane[i], a.lane[i], b.lane[i]);
    }
    StoreVec(w + at, values);
    if (first != nullptr) StoreVec(first + at, a);
    if (second != nullptr) StoreVec(second + at, b);
  });
}

SATRAP_KERNEL void SgdKernel(const StepScalars* scalars, const float* gradient, float* w,
                             int64_t count) {
  const StepScalars step = *scalars;
  if (step.apply == 0) return;
  UpdateEach(gradient, w, nullptr, nullptr, count, [step](float g, float& value, float&, float&) {
    value -= step.learning_rate * (g * step.scale + step.l2 * value);
  });
}

SATRAP_KERNEL void AdagradKernel(const StepScalars* scalars, float epsilon, const float* gradient,
                                 float* w, float* a, int64_t count) {
  const StepScalars step = *scalars;
  if (step.apply == 0) return;
  UpdateEach(gradient, w, a, nullptr, count,
             [step, epsilon](float raw, float& value, float& sum, float&) {
               const float g = raw * step.scale + step.l2 * value;
               sum += g * g;
               value -= step.learning_rate * g / (Sqrt(sum) + epsilon);
             });
}

SATRAP_KERNEL void AdamKernel(const StepScalars* scalars, AdamConstants adam, const float* gradient,
                              float* w, float* m, float* v, int64_t count) {
  const StepScalars step = *scalars;
  if (step.apply == 0) return;
  UpdateEach(gradient, w, m, v, count,
             [step, adam](float raw, float& value, float& mean, float& variance) {
               const float g = raw * step.scale + step.l2 * value;
               mean = adam.beta1 * mean + (1 - adam.beta1) * g;
               variance = adam.beta2 * variance + (1 - adam.beta2) * g * g;
               value -= step.learning_rate * (mean / step.correction1) /
                        (Sqrt(variance / step.correction2) + adam.epsilon);
             });
}

ElementwiseShape FlatShape(int64_t count) { return ShapeOf(1, (count + kN - 1) / kN); }

}  // namespace

void SgdStep(Stream* stream, const StepScalars* scalars, const float* gradient, float* w,
             int64_t count) {
  if (count == 0) return;
  const ElementwiseShape shape = FlatShape(count);
  Launch<SgdKernel>(stream, shape.grid, shape.block, 0, scalars, gradient, w, count);
}

void AdagradStep(Stream* stream, const StepScalars* scalars, float epsilon, const float* gradient,
                 float* w, float* a, int64_t count) {
  if (count == 0) return;
  const ElementwiseShape shape = FlatShape(count);
  Launch<AdagradKernel>(stream, shape.grid, shape.block, 0, scalars, epsilon, gradient, w, a,
                        count);
}

void AdamStep(Stream* stream, const StepScalars* scalars, const AdamConstants& constants,
              const float* gradient, float* w, float* m, float* v, int64_t count) {
  if (count == 0) return;
  const ElementwiseShape shape = FlatShape(count);
  Launch<AdamKernel>(stream, shape.grid, shape.block, 0, scalars, constants, gradient, w, m, v,
                     count);
}

}  // namespace satrap
