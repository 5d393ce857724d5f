// The part of BackendConformance that tests the control of a step, the operations that read it, and
// the count of values that are not finite.

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "common/base/check.h"
#include "nn_worker/backend/tensor_copy.h"
#include "nn_worker/backend/testing/half_conformance.h"
#include "nn_worker/backend/testing/reference_optimizer.h"
#include "nn_worker/backend/testing/tensor_testing.h"

namespace satrap {
namespace {

struct Sums {
  float samples, weight, not_finite;
};

// Lets `backend` decide a step by its sums.
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
  // The step's scale divides by the gradient scale with which the step's gradients were computed,
  // not by that of the next step.
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

// A control after `backend` has decided a step.
Tensor Decided(Backend* backend, const StepPlan& plan, const Sums& sums) {
  const Tensor control = NewControl(backend);
  Decide(backend, plan, sums, control);
  return control;
}

// A range of parameters with its optimizer states and its average. One range serves all rules,
// because on some backends each allocation makes waits longer.
struct Update {
  Tensor w, average;
  std::vector<Tensor> states;  // kMaxOptimizerStates
};

Update NewUpdate(Backend* backend, int64_t n) {
  const auto allocate = [&] {
    const auto tensor = AllocateTensor(backend, DType::kF32, 1, n);
    CHECK_OK(tensor.status());
    return *tensor;
  };
  Update update{allocate(), allocate(), {}};
  for (int s = 0; s < kMaxOptimizerStates; ++s) update.states.push_back(allocate());
  return update;
}

void Begin(Backend* backend, const std::vector<float>& w, float state, const Update& u) {
  CopyIn(backend, w, u.w);
  backend->Fill(u.average, 0.25f);
  for (const Tensor& tensor : u.states) backend->Fill(tensor, state);
}

void StepAll(Backend* backend, const Tensor& control, const OptimizerRule& rule, Tensor gradient,
             const Update& u) {
  backend->OptimizerStep(control, rule, gradient, u.w,
                         absl::MakeConstSpan(u.states).first(NumStates(rule)), {});
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
    for (int s = 0; s < NumStates(rule); ++s) ExpectNear(got.states[s], want.states[s], 1e-5);
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

// The range of a parameter may begin at any cache line of the network's flat buffer.
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
  std::vector<Tensor> all = u.states;
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

// Operations read the control when they run, so the host may enqueue a step before it is decided.
TEST_P(BackendConformance, ControlIsReadWhenAnOperationRuns) {
  const Tensor control = ControlThatApplies(backend_.get());
  const Tensor w = Of({{5}}), gradient = Of({{1}});
  backend_->OptimizerStep(control, OptimizerRule(), gradient, w, {}, {});
  Decide(backend_.get(), StepPlan(), {1, 0, 0}, control);
  backend_->OptimizerStep(control, OptimizerRule(), gradient, w, {}, {});
  EXPECT_EQ(Values(w), std::vector<float>{4});
}

// A kernel handles values in groups. Some copies have rows that are longer than a group, some have
// shorter rows or rows of the same length, and one has a single value. No copy covers the last
// values.
TEST_P(HalfConformance, AnOptimizerStepRoundsWeightsIntoTheirCopies) {
  const int64_t n = 211;
  for (const DType dtype : kHalves) {
    const Tensor gradient = Random(1, n, 1), w = Random(1, n, 2);
    std::vector<WeightCopy> copies;
    for (const auto& [begin, rows, cols] :
         {std::array<int64_t, 3>{0, 3, 7}, {32, 5, 8}, {80, 9, 2}, {112, 1, 1}, {128, 4, 19}}) {
      const Tensor padded = New(rows, cols, PaddedStride(dtype, cols), dtype);
      copies.push_back({begin, padded});
      backend_->Copy(w.Columns(begin, rows * cols).Reshaped(rows, cols), padded, /*add=*/false);
    }
    for (const bool applies : {true, false}) {
      const Tensor control =
          applies ? ControlThatApplies(backend_.get()) : AllocateControl(backend_.get()).value();
      backend_->OptimizerStep(control, OptimizerRule(), gradient, w, {}, copies);
      const std::vector<float> values = Values(w);
      for (const WeightCopy& copy : copies) {
        const auto first = values.begin() + copy.begin;
        const Twin want = TwinOf(New(1, copy.values.size(), 0, dtype));
        CopyIn(backend_.get(), BitsOf(dtype, {first, first + copy.values.size()}), want.half);
        EXPECT_EQ(HalfValues(copy.values), HalfValues(want.half)) << copy.begin;
      }
    }
  }
}

TEST_P(BackendConformance, CountsWhatIsBeyondALimitOrNotFinite) {
  const Tensor x = Random(300, 37, 1, 48);
  const auto set = [&](int64_t row, int64_t col, float value) {
    SetValueAt(backend_.get(), x, row, col, value);
  };
  set(3, 36, std::numeric_limits<float>::infinity());
  set(299, 0, std::numeric_limits<float>::quiet_NaN());
  set(128, 17, -std::numeric_limits<float>::infinity());
  set(6, 1, std::numeric_limits<float>::max());
  set(7, 2, -2e15f);
  set(8, 3, 1e15f);
  const Tensor count = New(1, 1, 0, DType::kF64);
  // CountBeyond is called twice, because it adds to the count: a step counts over several tensors.
  backend_->CountBeyond(x, std::numeric_limits<float>::max(), count);
  backend_->CountBeyond(x, std::numeric_limits<float>::max(), count);
  EXPECT_EQ(Doubles(count)[0], 6);
  const Tensor beyond = New(1, 1, 0, DType::kF64);
  backend_->CountBeyond(x, 1e15f, beyond);
  EXPECT_EQ(Doubles(beyond)[0], 5)
      << "what is not finite, two finite ones, and not the limit itself";
}

// This count detects a step whose gradients overflowed in F16.
TEST_P(HalfConformance, NonFiniteValuesAreCounted) {
  for (const DType dtype : kHalves) {
    const Tensor x = New(40, 7, 9, dtype);
    std::vector<float> values(280, 1);
    values[3] = std::numeric_limits<float>::infinity();
    values[200] = std::numeric_limits<float>::quiet_NaN();
    CopyIn(backend_.get(), BitsOf(dtype, values), x);
    const Tensor count = New(1, 1, 0, DType::kF64);
    backend_->CountBeyond(x, std::numeric_limits<float>::max(), count);
    EXPECT_EQ(Doubles(count)[0], 2);
  }
}

}  // namespace
}  // namespace satrap
