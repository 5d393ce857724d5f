#include "nn_worker/rank/run_record.h"

#include <initializer_list>

#include "gtest/gtest.h"

namespace satrap {
namespace {

MetricValues Values(double auc) {
  MetricValues values;
  values.set_samples(10);
  values.set_auc(auc);
  return values;
}

// Sets every field of a position that a record keeps, each to a different value.
RunPosition FullPosition() {
  RunPosition position;
  position.set_step(30);
  position.set_samples(600);
  position.set_validated_step(20);
  *position.mutable_best()->mutable_values() = Values(.7);
  position.mutable_best()->set_step(10);
  position.mutable_best()->set_cut("cut_0001_000002");
  position.set_validations_without_best(1);
  position.set_stopped_early(true);
  position.set_skipped_steps(5);
  position.set_skipped_steps_in_a_row(3);
  position.set_train_seconds(12.5);
  position.mutable_loss_scale()->set_scale(1024);
  position.mutable_loss_scale()->set_finite_steps(99);
  position.mutable_plateau()->set_factor(.25);
  position.mutable_plateau()->set_best(.7);
  position.mutable_plateau()->set_validations_without_best(1);
  position.mutable_plateau()->set_reductions(2);
  position.mutable_gradient_norms()->set_steps(25);
  position.mutable_gradient_norms()->set_clipped_steps(4);
  position.mutable_gradient_norms()->set_sum(50);
  position.mutable_gradient_norms()->set_last(3);
  position.mutable_label_windows()->set_window_steps(2);
  position.mutable_label_windows()->set_open_steps(1);
  position.mutable_label_windows()->add_samples(40);
  position.mutable_label_windows()->add_positives(8);
  position.set_overflowed_steps(2);
  return position;
}

TEST(RunRecordTest, GivesEveryFieldOfThePositionThatItBeganWith) {
  RunPosition position;
  EvaluationConfig evaluation;
  evaluation.mutable_reduce_on_plateau();
  RunRecord(evaluation, FullPosition()).FillPosition(&position);
  EXPECT_EQ(position.ShortDebugString(), FullPosition().ShortDebugString());
}

TEST(RunRecordTest, RatesFallOnAPlateauAndAreNotLoweredWithoutTheRule) {
  EvaluationConfig evaluation;
  RunRecord without(evaluation, FullPosition());
  EXPECT_FALSE(without.plateau_factor().has_value());
  RunPosition position;
  without.FillPosition(&position);
  EXPECT_FALSE(position.has_plateau()) << "the job was changed";
  evaluation.mutable_reduce_on_plateau()->set_factor(.5);
  evaluation.mutable_reduce_on_plateau()->set_patience(2);
  RunRecord record(evaluation, FullPosition());
  EXPECT_EQ(record.plateau_factor(), .25);
  EXPECT_FALSE(record.Validate(Values(.69)));
  EXPECT_EQ(record.plateau_factor(), .125);
  EXPECT_EQ(record.reductions(), 3u);
}

TEST(RunRecordTest, GradientNormsAreThoseOfAllGenerations) {
  RunRecord record(EvaluationConfig(), FullPosition());
  record.AddGradientNorm(7, 1);
  record.AddGradientNorm(40, .25f);
  const GradientNorms norms = record.Result().gradient_norms();
  EXPECT_EQ(norms.ShortDebugString(), "steps: 27 clipped_steps: 5 sum: 97 last: 40");
  RunPosition position;
  record.FillPosition(&position);
  EXPECT_EQ(position.gradient_norms().ShortDebugString(), norms.ShortDebugString());
  EXPECT_FALSE(RunRecord(EvaluationConfig(), RunPosition()).Result().has_gradient_norms());
}

absl::optional<LossScaleState> ScaleOf(double scale) {
  LossScaleState state;
  state.set_scale(scale);
  return state;
}

// A step that overflows at the smallest scale has gradients that are too large without any scale.
TEST(RunRecordTest, TellsStepsThatALossScaleWasHalvedForFromOthersThatAreNotFinite) {
  RunRecord::Traits traits;
  traits.moving_loss_scale = 4;
  RunRecord record(EvaluationConfig(), RunPosition(), traits);
  for (const double left : {2.0, 1.0}) record.CountStep(10, false, ScaleOf(left));
  EXPECT_EQ(record.Result().overflowed_steps(), 2u);
  record.CountStep(10, false, ScaleOf(1));
  record.CountStep(10, true, ScaleOf(2));  // it has grown
  record.CountStep(10, false, ScaleOf(1));
  EXPECT_EQ(record.Result().overflowed_steps(), 3u);
  EXPECT_EQ(record.Result().skipped_steps(), 4u);

  RunRecord fixed((EvaluationConfig()), RunPosition());
  for (int step = 0; step < 2; ++step) fixed.CountStep(10, false, ScaleOf(1024));
  EXPECT_EQ(fixed.Result().overflowed_steps(), 0u) << "a static scale";
  RunRecord none((EvaluationConfig()), RunPosition());
  none.CountStep(10, false);
  EXPECT_EQ(none.Result().overflowed_steps(), 0u);
}

void TrainByLabel(RunRecord* record) {
  for (int step = 0; step < 100; ++step) {
    record->CountStep(100, true);
    record->AddLabels(100, step < 50 ? 10 : 30);
  }
}

TEST(RunRecordTest, ALabelRateThatMovesIsToldAndStaysWithTheCuts) {
  RunRecord record((EvaluationConfig()), RunPosition());
  EXPECT_FALSE(record.Result().has_train_label_rate());
  TrainByLabel(&record);
  RunPosition position;
  record.FillPosition(&position);
  const RunRecord next(EvaluationConfig(), position);
  for (const RunRecord* known : std::initializer_list<const RunRecord*>{&record, &next}) {
    EXPECT_EQ(known->Result().train_label_rate(), .2);
    EXPECT_EQ(known->Result().moving_label_rate().lowest(), .1);
    EXPECT_EQ(known->Result().moving_label_rate().highest(), .3);
    EXPECT_TRUE(known->moving_label_rate().has_value());
  }
}

TEST(RunRecordTest, RecordsOfATopicHaveNoOrderThatAShuffleCouldMend) {
  RunRecord::Traits traits;
  traits.has_record_order = false;
  RunRecord record(EvaluationConfig(), RunPosition(), traits);
  TrainByLabel(&record);
  EXPECT_FALSE(record.moving_label_rate().has_value());
  EXPECT_FALSE(record.Result().has_moving_label_rate());
  EXPECT_EQ(record.Result().train_label_rate(), .2);
}

TEST(RunRecordTest, TheLastReductionComesBeforeTheStop) {
  EvaluationConfig evaluation;
  evaluation.set_patience(2);
  evaluation.mutable_reduce_on_plateau();
  RunRecord record(evaluation, RunPosition());
  record.Validate(Values(.7));
  record.Validate(Values(.7));
  EXPECT_EQ(record.plateau_factor(), .1);
  EXPECT_FALSE(record.out_of_patience());
  record.Validate(Values(.7));
  EXPECT_TRUE(record.out_of_patience());
}

TEST(RunRecordTest, ThePositionHasTheLossScaleThatTheLastStepLeft) {
  RunRecord record(EvaluationConfig(), FullPosition());
  LossScaleState halved;
  halved.set_scale(512);
  record.CountStep(7, /*finite=*/false, halved);
  RunPosition position;
  record.FillPosition(&position);
  EXPECT_EQ(position.loss_scale().scale(), 512);
  // The job was changed to another precision.
  record.CountStep(7, /*finite=*/true);
  RunPosition without;
  record.FillPosition(&without);
  EXPECT_FALSE(without.has_loss_scale());
}

TEST(RunRecordTest, TheResultIsThatOfAllGenerations) {
  const RunResult result = RunRecord(EvaluationConfig(), FullPosition()).Result();
  EXPECT_EQ(result.steps(), 30u);
  EXPECT_EQ(result.samples(), 600u);
  EXPECT_EQ(result.skipped_steps(), 5u);
  EXPECT_EQ(result.train_seconds(), 12.5);
  EXPECT_EQ(result.valid().auc(), .7);
  EXPECT_EQ(result.best_step(), 10u);
  EXPECT_EQ(result.model_dir(), "cut_0001_000002");
  EXPECT_TRUE(result.stopped_early());
}

TEST(RunRecordTest, CountsOnFromThePosition) {
  RunRecord record(EvaluationConfig(), FullPosition());
  record.CountStep(7, /*finite=*/false);
  EXPECT_EQ(record.step(), 31u);
  EXPECT_EQ(record.skipped_in_a_row(), 4u);
  record.CountStep(8, /*finite=*/true);
  EXPECT_EQ(record.skipped_in_a_row(), 0u);
  record.AddTrainingTime(500'000);
  const RunResult result = record.Result();
  EXPECT_EQ(result.steps(), 32u);
  EXPECT_EQ(result.samples(), 615u);
  EXPECT_EQ(result.skipped_steps(), 6u);
  EXPECT_EQ(result.train_seconds(), 13);
}

TEST(RunRecordTest, StepsWithLargeGradientsSurviveARestart) {
  const RunPosition from_nothing;
  RunRecord before(EvaluationConfig(), from_nothing);
  RunPosition position;
  before.FillPosition(&position);
  EXPECT_FALSE(position.has_large_gradient_steps()) << "positions of other runs stay as they were";
  before.CountLargeGradient();
  before.FillPosition(&position);
  RunRecord after(EvaluationConfig(), position);
  after.CountLargeGradient();
  EXPECT_EQ(after.Result().large_gradient_steps(), 2u);
}

TEST(RunRecordTest, AValidationIsOfItsStepAndOnlyOfThat) {
  RunRecord record(EvaluationConfig(), FullPosition());
  EXPECT_FALSE(record.is_validated());
  record.Validate(Values(.1));
  EXPECT_TRUE(record.is_validated());
  record.CountStep(1, true);
  EXPECT_FALSE(record.is_validated());
}

TEST(RunRecordTest, BestAndPatienceGoOnFromThePosition) {
  EvaluationConfig evaluation;
  evaluation.set_patience(2);
  RunRecord record(evaluation, FullPosition());
  EXPECT_FALSE(record.out_of_patience());
  EXPECT_FALSE(record.Validate(Values(.69)));
  EXPECT_TRUE(record.out_of_patience());
  EXPECT_EQ(record.best()->step(), 10u);
  EXPECT_TRUE(record.Validate(Values(.71)));
  EXPECT_FALSE(record.out_of_patience());
  EXPECT_EQ(record.best()->step(), 30u);
  EXPECT_EQ(record.best()->cut(), "") << "the cut of the best one before";
  record.SetBestCut("cut_0002_000001");
  EXPECT_EQ(record.Result().model_dir(), "cut_0002_000001");
  EXPECT_EQ(record.Result().valid().auc(), .71);
}

TEST(RunRecordTest, WithoutAValidationTheModelIsThatOfTheLastStep) {
  RunRecord record{EvaluationConfig(), RunPosition()};
  record.CountStep(1, true);
  EXPECT_EQ(record.Result().best_step(), 1u);
  EXPECT_EQ(record.Result().model_dir(), "");
  RunPosition position;
  record.FillPosition(&position);
  EXPECT_FALSE(position.has_best());
  EXPECT_FALSE(position.has_validated_step());
}

}  // namespace
}  // namespace satrap
