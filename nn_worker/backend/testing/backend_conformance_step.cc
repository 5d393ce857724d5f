// The part of BackendConformance that is about the control of a step, and the operations that read
// it.

#include <cmath>
#include <limits>
#include <vector>

#include "common/base/check.h"
#include "nn_worker/backend/tensor_copy.h"
#include "nn_worker/backend/testing/backend_conformance.h"
#include "nn_worker/backend/testing/reference_optimizer.h"

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
  // The step's scale divides by the gradient scale that its gradients carry, not by the next one.
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

// A control that `backend` has decided.
Tensor Decided(Backend* backend, const StepPlan& plan, const Sums& sums) {
  const Tensor control = NewControl(backend);
  Decide(backend, plan, sums, control);
  return control;
}

// A range with its state and its average. One range serves all rules, because each allocation makes
// the waits of some backends longer.
struct Update {
  Tensor w, average;
  std::vector<Tensor> slots;  // kMaxOptimizerSlots
};

Update NewUpdate(Backend* backend, int64_t n) {
  const auto allocate = [&] {
    const auto tensor = AllocateTensor(backend, DType::kF32, 1, n);
    CHECK_OK(tensor.status());
    return *tensor;
  };
  Update update{allocate(), allocate(), {}};
  for (int s = 0; s < kMaxOptimizerSlots; ++s) update.slots.push_back(allocate());
  return update;
}

void Begin(Backend* backend, const std::vector<float>& w, float state, const Update& u) {
  CopyIn(backend, w, u.w);
  backend->Fill(u.average, 0.25f);
  for (const Tensor& slot : u.slots) backend->Fill(slot, state);
}

void StepAll(Backend* backend, const Tensor& control, const OptimizerRule& rule, Tensor gradient,
             const Update& u) {
  backend->OptimizerStep(control, rule, gradient, u.w,
                         absl::MakeConstSpan(u.slots).first(NumSlots(rule)), {});
  backend->AverageStep(control, 0.5f, u.w, u.average);
}

TEST_P(BackendConformance, OptimizersAreTheReferences) {
  const int64_t n = 1003;
  const Tensor w = Random(1, n, 1), gradient = Random(1, n, 3), want_gradient = Reference(gradient);
  const std::vector<float> values = Values(w);
  const Update got = NewUpdate(backend_.get(), n), want = NewUpdate(reference_.get(), n);
  std::vector<Tensor> controls, want_controls;
  for (uint64_t step = 0; step < 3; ++step) {
    StepPlan plan;
    plan.step = step;
    plan.learning_rate = 0.1f;
    plan.correction1 = 0.5f;
    plan.correction2 = 0.25f;
    controls.push_back(Decided(backend_.get(), plan, {1, 4, 0}));
    want_controls.push_back(Decided(reference_.get(), plan, {1, 4, 0}));
  }
  for (const OptimizerRule& rule : reference::RulesOfEveryKind()) {
    SCOPED_TRACE(static_cast<int>(rule.kind));
    Begin(backend_.get(), values, 0.125f, got);
    Begin(reference_.get(), values, 0.125f, want);
    for (size_t step = 0; step < controls.size(); ++step) {
      StepAll(backend_.get(), controls[step], rule, gradient, got);
      StepAll(reference_.get(), want_controls[step], rule, want_gradient, want);
    }
    ExpectNear(got.w, want.w, 1e-5);
    ExpectNear(got.average, want.average, 1e-5);
    for (int s = 0; s < NumSlots(rule); ++s) ExpectNear(got.slots[s], want.slots[s], 1e-5);
  }
}

TEST_P(BackendConformance, AnOptimizerStepReachesAllOfALongRange) {
  const int64_t n = 20001;  // several pieces, the last one odd
  const Tensor gradient = Random(1, n, 1);
  const Update u = NewUpdate(backend_.get(), n);
  Begin(backend_.get(), std::vector<float>(n, 0), 0, u);
  StepAll(backend_.get(), ControlThatApplies(backend_.get()), OptimizerRule(), gradient, u);
  const std::vector<float> w = Values(u.w), average = Values(u.average), g = Values(gradient);
  for (int64_t i = 0; i < n; ++i) {
    ASSERT_EQ(w[i], -g[i]) << i;
    ASSERT_NEAR(average[i], 0.25f * 2 / 11 - g[i] * 9 / 11, 1e-6) << i;
  }
}

// The ranges of a network's parameters can begin at any cache line of its flat buffer.
TEST_P(BackendConformance, AnOptimizerStepChangesItsRangeAlone) {
  const Tensor w = Random(1, 96, 1), gradient = Random(1, 96, 2);
  const std::vector<float> before = Values(w);
  StepPlan plan;
  plan.learning_rate = 1;
  const Tensor control = Decided(backend_.get(), plan, {1, 1, 0});
  backend_->OptimizerStep(control, OptimizerRule(), gradient.Columns(16, 33), w.Columns(16, 33), {},
                          {});
  const std::vector<float> after = Values(w);
  for (size_t i = 0; i < after.size(); ++i) {
    EXPECT_EQ(after[i] == before[i], i < 16 || i >= 49) << i;
  }
}

TEST_P(BackendConformance, AnAverageFollowsTheFirstStepsFasterThanLaterOnes) {
  const Tensor control = NewControl(backend_.get());
  const Tensor w = Of({{8}}), average = Of({{0}});
  StepPlan plan;
  Decide(backend_.get(), plan, {1, 1, 0}, control);  // after step 0: 2 / 11 of the old average
  backend_->AverageStep(control, 0.75f, w, average);
  EXPECT_NEAR(Values(average)[0], 8 * 9 / 11.0, 1e-5);
  plan.step = 1000000;
  Decide(backend_.get(), plan, {1, 1, 0}, control);
  backend_->Fill(average, 0);
  backend_->AverageStep(control, 0.75f, w, average);
  EXPECT_EQ(Values(average)[0], 2);
}

TEST_P(BackendConformance, AStepThatDoesNotApplyChangesNothingWhateverTheGradient) {
  const float inf = std::numeric_limits<float>::infinity();
  const Tensor gradient = Of({{inf, -inf, std::nanf(""), 1}});
  const Tensor moments = New(1, 9, 0, DType::kF64);
  CopyIn(backend_.get(), std::vector<double>(9, std::nan("")), moments);
  const Update u = NewUpdate(backend_.get(), 4);
  const Tensor mean = Random(1, 4, 2), variance = Random(1, 4, 3);
  std::vector<Tensor> all = u.slots;
  all.insert(all.end(), {u.w, u.average, mean, variance});
  Begin(backend_.get(), {1, -2, 0, 3}, 0.125f, u);
  std::vector<std::vector<float>> before, after;
  for (const Tensor& t : all) before.push_back(Values(t));
  StepPlan plan;
  plan.learning_rate = 1;
  for (const Sums& sums : {Sums{4, 4, 1}, Sums{4, 0, 0}, Sums{4, std::nanf(""), 0}}) {
    const Tensor control = Decided(backend_.get(), plan, sums);
    for (const OptimizerRule& rule : reference::RulesOfEveryKind()) {
      StepAll(backend_.get(), control, rule, gradient, u);
    }
    backend_->BatchNormRunning(control, moments, 0.5f, mean, variance);
  }
  for (const Tensor& t : all) after.push_back(Values(t));
  EXPECT_EQ(after, before);
}

TEST_P(BackendConformance, FtrlKeepsInitialValuesWhereTheGradientIsZero) {
  OptimizerRule ftrl;
  ftrl.kind = OptimizerKind::kFtrl;
  ftrl.beta = 1;
  ftrl.lambda1 = 0.5f;
  const Tensor w = Of({{-2, 0, 3}});
  backend_->OptimizerStep(ControlThatApplies(backend_.get()), ftrl, New(1, 3), w,
                          {New(1, 3), New(1, 3)}, {});
  EXPECT_EQ(Values(w), (std::vector<float>{-2, 0, 3}));
}

TEST_P(BackendConformance, ARateOfZeroMovesNothing) {
  const Tensor control = Decided(backend_.get(), StepPlan(), {1, 1, 0});
  const std::vector<float> values = {1, -2, 0, 3};
  const Update u = NewUpdate(backend_.get(), 4);
  const Tensor gradient = Of({{1, 1, 1, 1}});
  for (const OptimizerRule& rule : reference::RulesOfEveryKind()) {
    Begin(backend_.get(), values, 0, u);
    StepAll(backend_.get(), control, rule, gradient, u);
    EXPECT_EQ(Values(u.w), values) << static_cast<int>(rule.kind);
  }
}

// The control is read when an operation runs, so the host may enqueue a step before it is decided.
TEST_P(BackendConformance, ControlIsReadWhenAnOperationRuns) {
  const Tensor control = ControlThatApplies(backend_.get());
  const Tensor w = Of({{5}}), gradient = Of({{1}});
  backend_->OptimizerStep(control, OptimizerRule(), gradient, w, {}, {});
  Decide(backend_.get(), StepPlan(), {1, 0, 0}, control);
  backend_->OptimizerStep(control, OptimizerRule(), gradient, w, {}, {});
  EXPECT_EQ(Values(w), std::vector<float>{4});
}

}  // namespace
}  // namespace satrap
