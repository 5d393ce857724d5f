// The part of BackendConformance that is about the control of a step, and the operations that read it.

#include <cmath>
#include <limits>
#include <vector>

#include "common/base/check.h"
#include "nn_worker/backend/backend_conformance.h"
#include "nn_worker/backend/tensor_copy.h"

namespace satrap {
namespace {

struct Sums {
  float samples, weight, not_finite;
};

// Lets `backend` decide a step.
void Decide(Backend* backend, const StepPlan& plan, const Sums& sums, const Tensor& control) {
  const auto tensor = AllocateTensor(backend, DType::kF32, 1, kNumStepSums);
  CHECK_OK(tensor.status());
  std::vector<float> values(kNumStepSums);
  values[kStepSamples] = sums.samples;
  values[kStepWeight] = sums.weight;
  values[kStepNotFinite] = sums.not_finite;
  CopyIn(backend, values, *tensor);
  backend->DecideStep(plan, *tensor, control);
}

Tensor NewControl(Backend* backend) {
  const auto control = AllocateControl(backend);
  CHECK_OK(control.status());
  return *control;
}

}  // namespace

Tensor BackendConformance::ControlThatApplies(Backend* backend) {
  const Tensor control = NewControl(backend);
  StepPlan plan;
  plan.learning_rate = 1;
  Decide(backend, plan, {1, 1, 0}, control);
  return control;
}

namespace {

TEST_P(BackendConformance, AStepAppliesIfItHasWeightAndIsFinite) {
  const Tensor control = NewControl(backend_.get());
  StepPlan plan;
  plan.step = (uint64_t{1} << 40) + 3;
  plan.learning_rate = 0.25f;
  plan.correction1 = 0.5f;
  plan.correction2 = 0.75f;
  plan.global_batch_size = 64;
  for (const auto& [sums, apply, scale] : {std::tuple<Sums, uint32_t, double>{{64, 96, 0}, 1, 96},
                                           {{16, 20, 0}, 1, 80},   // a short batch: 20 * 64 / 16
                                           {{128, 50, 0}, 1, 50},  // more samples than a batch
                                           {{64, 96, 2}, 0, 96},
                                           {{64, 0, 0}, 0, 0},
                                           {{0, 0, 1}, 0, 0}}) {
    Decide(backend_.get(), plan, sums, control);
    const StepControl decided = ReadControl(backend_.get(), control);
    EXPECT_EQ(decided.apply, apply) << sums.samples << " samples of weight " << sums.weight;
    EXPECT_EQ(decided.scale, scale == 0 ? 0.0f : static_cast<float>(1 / scale));
    EXPECT_EQ(decided.step, plan.step);
    EXPECT_EQ(decided.learning_rate, 0.25f);
    EXPECT_EQ(decided.correction1, 0.5f);
    EXPECT_EQ(decided.correction2, 0.75f);
    EXPECT_EQ(decided.gradient_scale, 1);
  }
  EXPECT_EQ(ReadControl(backend_.get(), control).overflows, 1u) << "without weight it is none";
}

TEST_P(BackendConformance, TheScaleOfGradientsGrowsInCleanStepsAndBacksOffInOthers) {
  const Tensor got = NewControl(backend_.get()), want = NewControl(reference_.get());
  StepPlan plan;
  plan.gradient_scale = {3, 4, 0.5f, 0.25f, 8};
  struct Case {
    float not_finite, weight, scale_of_step, scale_after;
  };
  // The step's own scale divides by what its gradients carry, and not by what follows from it.
  for (const Case& c : {Case{0, 2, 1, 1},
                        {0, 2, 1, 1},
                        {0, 2, 1, 4},
                        {0, 0, 0, 4},
                        {0, 2, 4, 4},
                        {1, 2, 4, 2},
                        {0, 2, 2, 2},
                        {0, 2, 2, 2},
                        {0, 2, 2, 8},
                        {0, 2, 8, 8},
                        {0, 2, 8, 8},
                        {0, 2, 8, 8},
                        {1, 2, 8, 4},
                        {1, 2, 4, 2},
                        {1, 2, 2, 1},
                        {1, 2, 1, 0.5f},
                        {1, 2, .5f, .25f},
                        {1, 2, .25f, .25f}}) {
    Decide(backend_.get(), plan, {1, c.weight, c.not_finite}, got);
    Decide(reference_.get(), plan, {1, c.weight, c.not_finite}, want);
    const StepControl a = ReadControl(backend_.get(), got);
    const StepControl b = ReadControl(reference_.get(), want);
    EXPECT_EQ(a.gradient_scale, c.scale_after);
    EXPECT_EQ(a.scale, c.weight == 0 ? 0 : 1 / (c.weight * c.scale_of_step));
    EXPECT_EQ(b.gradient_scale, a.gradient_scale);
    EXPECT_EQ(b.scale, a.scale);
    EXPECT_EQ(b.clean_steps, a.clean_steps);
    EXPECT_EQ(b.overflows, a.overflows);
  }
  EXPECT_EQ(ReadControl(backend_.get(), got).overflows, 7u);
}

TEST_P(BackendConformance, TheLossGivesGradientsTimesTheirScaleAndSumsWithout) {
  const Tensor control = NewControl(backend_.get());
  StepPlan plan;
  plan.gradient_scale = {1, 16, 0.5f, 1, 16};
  Decide(backend_.get(), plan, {1, 1, 0}, control);
  const Tensor dz = New(2, 1), sums = New(1, 2, 0, DType::kF64);
  backend_->BceWithLogits(control, Of({{0}, {0}}), Of({{1}, {0}}), Of({{1}, {3}}), Tensor(), dz,
                          sums);
  EXPECT_EQ(Values(dz), (std::vector<float>{-8, 24}));
  EXPECT_NEAR(Doubles(sums)[0], 4 * std::log(2.0), 1e-6);
}

struct Update {
  Tensor control, w, a, m, v;
};

// Everything that a step may change.
void UpdateAll(Backend* backend, const Update& u, Tensor gradient, Tensor moments) {
  backend->SgdStep(u.control, 0.25f, gradient, u.w);
  backend->AdagradStep(u.control, 0.5f, 1e-3f, gradient, u.w, u.a);
  backend->AdamStep(u.control, 0.125f, {0.5f, 0.75f, 1e-3f}, gradient, u.w, u.m, u.v);
  backend->BatchNormRunning(u.control, moments, 0.5f, u.a, u.v);
}

TEST_P(BackendConformance, OptimizersAreTheReferences) {
  const int64_t n = 20001;  // several pieces, the last one odd
  const Update got{NewControl(backend_.get()), Random(1, n, 1), New(1, n), Random(1, n, 2),
                   New(1, n)};
  backend_->Fill(got.a, 0.5f);
  backend_->Fill(got.v, 0.5f);
  const Tensor gradient = Random(1, n, 3), moments = New(1, 2 * n + 1, 0, DType::kF64);
  const Update want{NewControl(reference_.get()), Reference(got.w), Reference(got.a),
                    Reference(got.m), Reference(got.v)};
  const Tensor want_gradient = Reference(gradient), want_moments = Reference(moments);
  StepPlan plan;
  plan.learning_rate = 0.1f;
  plan.correction1 = 0.5f;
  plan.correction2 = 0.25f;
  for (int step = 0; step < 3; ++step) {
    Decide(backend_.get(), plan, {1, 4, 0}, got.control);
    Decide(reference_.get(), plan, {1, 4, 0}, want.control);
    UpdateAll(backend_.get(), got, gradient, moments);
    UpdateAll(reference_.get(), want, want_gradient, want_moments);
  }
  ExpectNear(got.w, want.w, 1e-5);
  ExpectNear(got.a, want.a, 1e-5);
  ExpectNear(got.m, want.m, 1e-5);
  ExpectNear(got.v, want.v, 1e-5);
}

TEST_P(BackendConformance, AStepThatDoesNotApplyChangesNothingWhateverTheGradient) {
  const float inf = std::numeric_limits<float>::infinity();
  const Tensor gradient = Of({{inf, -inf, std::nanf(""), 1}});
  const Tensor moments = New(1, 9, 0, DType::kF64);
  CopyIn(backend_.get(), std::vector<double>(9, std::nan("")), moments);
  for (const Sums& sums : {Sums{4, 4, 1}, Sums{4, 0, 0}, Sums{4, std::nanf(""), 0}}) {
    const Update u{NewControl(backend_.get()), Random(1, 4, 1), Random(1, 4, 2), Random(1, 4, 3),
                   Random(1, 4, 4)};
    std::vector<std::vector<float>> before, after;
    for (const Tensor& t : {u.w, u.a, u.m, u.v}) before.push_back(Values(t));
    StepPlan plan;
    plan.learning_rate = 1;
    Decide(backend_.get(), plan, sums, u.control);
    UpdateAll(backend_.get(), u, gradient, moments);
    for (const Tensor& t : {u.w, u.a, u.m, u.v}) after.push_back(Values(t));
    EXPECT_EQ(after, before);
  }
}

// The control is read when an operation runs, so the host may enqueue a step before it is decided.
TEST_P(BackendConformance, ControlIsReadWhenAnOperationRuns) {
  const Tensor control = ControlThatApplies(backend_.get());
  const Tensor w = Of({{5}}), gradient = Of({{1}});
  backend_->SgdStep(control, 0, gradient, w);
  Decide(backend_.get(), StepPlan(), {1, 0, 0}, control);
  backend_->SgdStep(control, 0, gradient, w);
  EXPECT_EQ(Values(w), std::vector<float>{4});
}

}  // namespace
}  // namespace satrap
