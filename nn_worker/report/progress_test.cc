#include "nn_worker/report/progress.h"

#include <limits>
#include <string>
#include <vector>

#include "common/testing/manual_executor.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

class ProgressTest : public testing::Test {
 protected:
  void Step(uint64_t samples, double loss, int staleness) {
    StepEvent event;
    event.steps = ++steps_;
    event.samples = samples;
    event.weight = static_cast<double>(samples);
    event.loss = loss;
    event.had_part = true;
    event.staleness = staleness;
    progress_.OnStep(event);
  }

  ManualExecutor clock_;
  std::vector<std::string> lines_;
  Progress progress_{&clock_, [] { return .75; },
                     [this](const std::string& line) { lines_.push_back(line); }};
  uint64_t steps_ = 0;
};

TEST_F(ProgressTest, AWindowSumsItsSteps) {
  progress_.OnPhase("training");
  clock_.AdvanceBy(1'000'000);
  Step(100, 30, 1);
  clock_.AdvanceBy(1'000'000);
  EXPECT_EQ(lines_.size(), 1u);
  Step(300, 60, 0);
  ASSERT_EQ(lines_.size(), 2u);
  const TrainProgress p = progress_.Snapshot();
  EXPECT_EQ(p.step(), 2u);
  EXPECT_EQ(p.samples(), 400u);
  EXPECT_DOUBLE_EQ(p.samples_per_second(), 300);
  EXPECT_DOUBLE_EQ(p.window_loss(), .2);
  EXPECT_DOUBLE_EQ(p.window_auc(), .75);
  EXPECT_EQ(
      lines_[0],
      "{\"event\":\"train\",\"generation\":1,\"epoch\":0,\"step\":1,\"samples\":100,\"seconds\":1,"
      "\"samples_per_second\":100,\"loss\":0.3,\"auc\":0.75,\"staleness_max\":1,"
      "\"staleness_mean\":1}");
}

// The expected texts were written by an earlier version of the code for the same events.
TEST_F(ProgressTest, LinesAreByteForByteThoseOfTheFormat) {
  progress_.OnPhase("training");
  progress_.OnGradientNorm(1.0 / 3, .5f);
  clock_.AdvanceBy(1'053'128);
  Step(16384, 11149.97, 3);
  EvaluationEvent event;
  event.stream = VALID_STREAM;
  event.epoch = 2;
  event.steps = 18446744073709551615u;
  event.best = true;
  MetricValues& values = event.values;
  values.set_samples(900000);
  values.set_auc(.7765432109876543);
  values.set_logloss(1e-7);
  values.set_normalised_entropy(std::numeric_limits<double>::infinity());
  values.set_calibration(1e300);
  values.set_mae(1234567890123.0);
  values.set_mse(-.5);
  values.set_rmse(1);
  values.set_gauc_by_samples(0);
  values.set_gauc_groups(7);
  values.set_gauc_groups_left_out(8);
  values.set_positives(5);
  values.add_tasks()->set_name("ctr");
  values.mutable_tasks(0)->mutable_values()->set_auc(.5);
  values.mutable_tasks(0)->mutable_values()->set_positives(5);
  event.learning_rate_factor = 1.0 / 3;
  progress_.OnEvaluation(event);
  ASSERT_EQ(lines_.size(), 2u);
  EXPECT_EQ(lines_[0],
            R"({"event":"train","generation":1,"epoch":0,"step":1,"samples":16384,)"
            R"("seconds":1.053128,"samples_per_second":15557.4631,"loss":0.680540161,"auc":0.75,)"
            R"("staleness_max":3,"staleness_mean":3,"gradient_norm":0.333333333,)"
            R"("clipped_steps":1})");
  EXPECT_EQ(lines_[1],
            R"({"event":"valid","generation":1,"epoch":2,"step":18446744073709551615,)"
            R"("samples":900000,"auc":0.776543211,"logloss":1e-07,"normalised_entropy":null,)"
            R"("calibration":1e+300,"mae":1.23456789e+12,"mse":-0.5,"rmse":1,)"
            R"("gauc_by_samples":0,"gauc_groups":7,"gauc_groups_left_out":8,)"
            R"("tasks":{"ctr":{"samples":0,"auc":0.5}},"best":true,)"
            R"("learning_rate_factor":0.333333333})");
}

TEST_F(ProgressTest, AMovingLabelRateIsShownAsLongAsItMoves) {
  progress_.OnPhase("training");
  StepEvent event;
  event.moving_label_rate.emplace().set_share(.02);
  progress_.OnStep(event);
  EXPECT_EQ(progress_.Snapshot().moving_label_rate().share(), .02);
  progress_.OnStep(StepEvent());
  EXPECT_FALSE(progress_.Snapshot().has_moving_label_rate());
}

TEST_F(ProgressTest, TheLossOfAWindowLeavesOutStepsThatAreNotFinite) {
  progress_.OnPhase("training");
  StepEvent skipped;
  skipped.weight = 100;
  skipped.loss = std::numeric_limits<double>::infinity();
  skipped.finite = false;
  progress_.OnStep(skipped);
  clock_.AdvanceBy(1'000'000);
  Step(100, 30, 0);
  EXPECT_DOUBLE_EQ(progress_.Snapshot().window_loss(), .3);
}

// The norm of the step that ends a window arrives after the window has ended, so it counts in the
// next window.
TEST_F(ProgressTest, ALineHasTheMeanNormOfItsWindowAndProgressThatOfTheRun) {
  progress_.OnPhase("training");
  EXPECT_FALSE(progress_.Snapshot().has_gradient_norms());
  clock_.AdvanceBy(1'000'000);
  Step(100, 30, 0);
  progress_.OnGradientNorm(5, 1);
  Step(100, 30, 0);
  progress_.OnGradientNorm(20, .5f);
  clock_.AdvanceBy(1'000'000);
  Step(100, 30, 0);
  progress_.OnGradientNorm(11, 1);
  ASSERT_EQ(lines_.size(), 2u);
  EXPECT_EQ(lines_[0].find("gradient_norm"), std::string::npos);
  EXPECT_NE(lines_[1].find(",\"gradient_norm\":12.5,\"clipped_steps\":1}"), std::string::npos)
      << lines_[1];
  EXPECT_EQ(progress_.Snapshot().gradient_norms().ShortDebugString(),
            "steps: 3 clipped_steps: 1 sum: 36 last: 11");
}

TEST_F(ProgressTest, AWindowGoesOnAfterAnEvaluationAndLeavesOutItsTime) {
  progress_.OnPhase("training");
  clock_.AdvanceBy(400'000);
  Step(100, 30, 0);
  progress_.OnPhase("validating");
  clock_.AdvanceBy(60'000'000);
  progress_.OnPhase("training");
  clock_.AdvanceBy(600'000);
  EXPECT_EQ(lines_.size(), 0u);
  Step(300, 60, 0);
  EXPECT_EQ(lines_.size(), 1u);
  EXPECT_DOUBLE_EQ(progress_.Snapshot().samples_per_second(), 400);
  EXPECT_DOUBLE_EQ(progress_.Snapshot().window_loss(), .225);
}

// On a fast machine each epoch of a small file ends within a fraction of a second.
TEST_F(ProgressTest, EpochsThatAreShorterThanAWindowHaveLinesToo) {
  for (int epoch = 0; epoch < 100; ++epoch) {
    progress_.OnPhase("training");
    clock_.AdvanceBy(100'000);
    Step(10, 1, 0);
    progress_.OnPhase("validating");
    clock_.AdvanceBy(10'000);
  }
  EXPECT_EQ(lines_.size(), 10u);
  EXPECT_DOUBLE_EQ(progress_.Snapshot().samples_per_second(), 100);
}

TEST_F(ProgressTest, TheRateFallsWhileNoDataComes) {
  progress_.OnPhase("training");
  clock_.AdvanceBy(1'000'000);
  Step(1000, 1, 0);
  clock_.AdvanceBy(500'000);
  Step(100, 1, 0);
  EXPECT_DOUBLE_EQ(progress_.Snapshot().samples_per_second(), 1000);
  clock_.AdvanceBy(9'500'000);
  EXPECT_DOUBLE_EQ(progress_.Snapshot().samples_per_second(), 10);
}

TEST_F(ProgressTest, AnEndlessStreamHasNoTimeLeft) {
  progress_.SetExpectedSamples(1000);
  progress_.OnPhase("training");
  clock_.AdvanceBy(1'000'000);
  Step(10, 1, 0);
  EXPECT_DOUBLE_EQ(progress_.Snapshot().seconds_left(), 99);
  progress_.SetEndless();
  EXPECT_LT(progress_.Snapshot().seconds_left(), 0);
  EXPECT_TRUE(progress_.Snapshot().endless());
}

TEST_F(ProgressTest, NanIsNullInALine) {
  EvaluationEvent event;
  event.steps = 7;
  event.values.set_samples(3);
  event.values.set_auc(std::numeric_limits<double>::quiet_NaN());
  event.values.set_logloss(.5);
  progress_.OnEvaluation(event);
  EXPECT_EQ(lines_[0],
            "{\"event\":\"valid\",\"generation\":1,\"epoch\":0,\"step\":7,\"samples\":3,\"auc\":"
            "null,\"logloss\":0.5,\"best\":false}");
}

TEST_F(ProgressTest, AReductionIsInTheLineAndIsToldOf) {
  std::vector<double> told;
  progress_.SetReductionSink(
      [&](const EvaluationEvent& event) { told.push_back(*event.learning_rate_factor); });
  EvaluationEvent event;
  event.learning_rate_factor = 1;
  progress_.OnEvaluation(event);
  event.learning_rate_factor = .5;
  event.reduced = true;
  event.reductions = 1;
  progress_.OnEvaluation(event);
  EXPECT_EQ(progress_.Snapshot().learning_rate_factor(), .5);
  EXPECT_EQ(progress_.Snapshot().reductions(), 1u);
  EXPECT_EQ(lines_[1],
            "{\"event\":\"valid\",\"generation\":1,\"epoch\":0,\"step\":0,\"samples\":0,"
            "\"best\":false,\"learning_rate_factor\":0.5}");
  EXPECT_EQ(told, std::vector<double>{.5});
}

TEST_F(ProgressTest, EachTaskHasItsOwnValuesInALine) {
  EvaluationEvent event;
  event.stream = TEST_STREAM;
  event.values.set_samples(3);
  event.values.set_auc(.75);
  TaskMetricValues* ctr = event.values.add_tasks();
  ctr->set_name("ctr");
  ctr->mutable_values()->set_samples(3);
  ctr->mutable_values()->set_auc(.75);
  TaskMetricValues* rating = event.values.add_tasks();
  rating->set_name("rating");
  rating->mutable_values()->set_samples(2);
  rating->mutable_values()->set_rmse(.5);
  rating->mutable_values()->set_gauc_groups(4);
  progress_.OnEvaluation(event);
  EXPECT_EQ(
      lines_[0],
      "{\"event\":\"test\",\"generation\":1,\"epoch\":0,\"step\":0,\"samples\":3,\"auc\":0.75,"
      "\"tasks\":{\"ctr\":{\"samples\":3,\"auc\":0.75},"
      "\"rating\":{\"samples\":2,\"rmse\":0.5,\"gauc_groups\":4}},\"best\":false}");
}

TEST_F(ProgressTest, CountsGoOnFromTheCutAndLinesNameTheGeneration) {
  RunPosition position;
  position.set_epoch(2);
  position.set_step(70);
  position.set_samples(7000);
  position.mutable_plateau()->set_factor(.25);
  position.mutable_plateau()->set_reductions(2);
  position.mutable_gradient_norms()->set_steps(70);
  Progress later(
      &clock_, [] { return .5; }, [this](const std::string& line) { lines_.push_back(line); }, 3,
      position);
  EXPECT_EQ(later.Snapshot().epoch(), 2u);
  EXPECT_EQ(later.Snapshot().step(), 70u);
  EXPECT_EQ(later.Snapshot().learning_rate_factor(), .25);
  EXPECT_EQ(later.Snapshot().reductions(), 2u);
  EXPECT_EQ(later.Snapshot().gradient_norms().steps(), 70u);
  later.OnPhase("training");
  StepEvent event;
  event.steps = 71;
  event.samples = 100;
  later.OnStep(event);
  EXPECT_EQ(later.Snapshot().samples(), 7100u);
  later.OnEvaluation(EvaluationEvent());
  ASSERT_EQ(lines_.size(), 1u);
  EXPECT_EQ(lines_[0].find("{\"event\":\"valid\",\"generation\":3,"), 0u) << lines_[0];
}

TEST_F(ProgressTest, CutsAreCountedByHowTheyEnd) {
  progress_.OnCutBegun();
  EXPECT_TRUE(progress_.Cuts().writing());
  CutOutcome outcome;
  outcome.committed = true;
  progress_.OnCutEnded(outcome);
  EXPECT_FALSE(progress_.Cuts().writing());
  progress_.OnCutBegun();
  outcome.committed = false;
  outcome.cause = "disk full";
  progress_.OnCutEnded(outcome);
  EXPECT_EQ(progress_.Cuts().begun(), 2u);
  EXPECT_EQ(progress_.Cuts().committed(), 1u);
  EXPECT_EQ(progress_.Cuts().abandoned(), 1u);
  EXPECT_EQ(progress_.Cuts().last_abandoned_cause(), "disk full");
}

TEST_F(ProgressTest, EachCutThatHasEndedHasALine) {
  CutOutcome outcome;
  outcome.name = "cut_0001_000002";
  outcome.committed = true;
  outcome.bytes = 4096;
  outcome.copied_bytes = 288;
  outcome.seconds = 1.5;
  progress_.OnCutEnded(outcome);
  EXPECT_EQ(lines_, std::vector<std::string>{
                        "{\"event\":\"cut\",\"generation\":1,\"cut\":\"cut_0001_000002\","
                        "\"committed\":true,\"seconds\":1.5,\"bytes\":4096,\"copied_bytes\":288}"});
}

TEST_F(ProgressTest, TimeLeftFollowsFromWhatIsExpected) {
  EXPECT_LT(progress_.Snapshot().seconds_left(), 0);
  progress_.OnPhase("training");
  progress_.SetExpectedSamples(500);
  clock_.AdvanceBy(1'000'000);
  Step(100, 1, 0);
  EXPECT_DOUBLE_EQ(progress_.Snapshot().seconds_left(), 4);
}

}  // namespace
}  // namespace satrap
