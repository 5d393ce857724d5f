#include "deploy/coordinator/claim/start_position.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using ::testing::HasSubstr;

JobConfig JobOf(int epochs, int max_steps = 0, int patience = 0) {
  JobConfig job;
  job.set_epochs(epochs);
  job.set_max_steps(max_steps);
  job.mutable_evaluation()->set_patience(patience);
  return job;
}

// The position of a cut at which training is over (FINISH).
RunPosition OverAt(uint32_t epoch, uint64_t step, uint32_t without_best = 0) {
  RunPosition position;
  position.set_epoch(epoch);
  position.set_step(step);
  position.set_validations_without_best(without_best);
  position.set_next(RunPosition::FINISH);
  return position;
}

LedgerState LedgerUpTo(uint32_t epochs) {
  LedgerState ledger;
  for (uint32_t i = 0; i < epochs; ++i) ledger.add_epochs()->set_epoch(i);
  return ledger;
}

RunPosition::Next NextOf(const JobConfig& before, const JobConfig& job, RunPosition position) {
  ContinueTraining(before, job, &position);
  return position.next();
}

TEST(StartPosition, TrainingIsOverByEpochsByStepsOrByPatience) {
  EXPECT_EQ(WhyTrainingIsOver(JobOf(2), OverAt(2, 40)), "epoch 2 of 2 is trained");
  EXPECT_EQ(WhyTrainingIsOver(JobOf(2, 40), OverAt(1, 41)), "step 41 reaches max_steps (40)");
  EXPECT_EQ(WhyTrainingIsOver(JobOf(2, 0, 3), OverAt(1, 41, 3)),
            "evaluation.patience (3) has run out");
  EXPECT_EQ(WhyTrainingIsOver(JobOf(2, 42, 3), OverAt(1, 41, 2)), "");
  EXPECT_EQ(WhyTrainingIsOver(JobOf(2), OverAt(1, 41, 2)), "") << "0 is no limit";
}

TEST(StartPosition, AJobThatAsksForMoreTrainsOn) {
  EXPECT_EQ(NextOf(JobOf(2), JobOf(3), OverAt(2, 40)), RunPosition::RESUME);
  EXPECT_EQ(NextOf(JobOf(2, 40), JobOf(2, 80), OverAt(1, 40)), RunPosition::RESUME);
  EXPECT_EQ(NextOf(JobOf(2, 40), JobOf(2, 0), OverAt(1, 40)), RunPosition::RESUME);
  RunPosition impatient = OverAt(1, 40, 3);
  impatient.set_stopped_early(true);
  ContinueTraining(JobOf(2, 0, 3), JobOf(2, 0, 4), &impatient);
  EXPECT_EQ(impatient.next(), RunPosition::RESUME);
  EXPECT_FALSE(impatient.stopped_early());
}

TEST(StartPosition, AJobThatAsksForNoMoreStaysOver) {
  EXPECT_EQ(NextOf(JobOf(2), JobOf(2), OverAt(2, 40)), RunPosition::FINISH);
  EXPECT_EQ(NextOf(JobOf(2, 40), JobOf(5, 40), OverAt(1, 40)), RunPosition::FINISH);
  EXPECT_EQ(NextOf(JobOf(2, 0, 3), JobOf(5, 0, 3), OverAt(2, 40, 3)), RunPosition::FINISH)
      << "patience ran out in the step in which the epochs ended";
  EXPECT_EQ(NextOf(JobOf(2), JobOf(5), OverAt(1, 40)), RunPosition::FINISH)
      << "it ended for another reason than its job";
}

JobConfig JudgedBy(Metric metric, const char* task = "", int patience = 3) {
  JobConfig job = JobOf(5, 0, patience);
  for (const char* name : {"ctr", "rating"}) job.mutable_model()->add_tasks()->set_name(name);
  job.mutable_evaluation()->set_metric(metric);
  job.mutable_evaluation()->set_task(task);
  return job;
}

// The position at step 40, after two validations without a new best (patience is three) and one
// reduction of the learning rates.
RunPosition JudgedAt40() {
  RunPosition position = OverAt(1, 40, 2);
  position.set_next(RunPosition::RESUME);
  position.set_validated_step(40);
  position.mutable_best()->set_cut("cut_0001_000002");
  position.mutable_plateau()->set_factor(.5);
  position.mutable_plateau()->set_best(.7);
  position.mutable_plateau()->set_validations_without_best(1);
  return position;
}

TEST(StartPosition, ValuesOfAnotherMetricOrTaskAreNotComparedWith) {
  for (const JobConfig& job : {JudgedBy(LOGLOSS), JudgedBy(AUC, "rating")}) {
    RunPosition position = JudgedAt40();
    const std::string told = BeginFrom(JudgedBy(AUC, "ctr"), job, &position);
    EXPECT_THAT(told, HasSubstr("but were judged by AUC of task 'ctr' at the cut of step 40"));
    EXPECT_THAT(told, HasSubstr("begin anew"));
    EXPECT_FALSE(position.has_best());
    EXPECT_EQ(position.validations_without_best(), 0u);
    EXPECT_EQ(position.validated_step(), 40u);
    EXPECT_EQ(position.plateau().ShortDebugString(), "factor: 0.5")
        << "the rates stay where they are";
  }
}

TEST(StartPosition, TheSameMetricAndTaskGoOn) {
  RunPosition position = JudgedAt40();
  EXPECT_EQ(BeginFrom(JudgedBy(AUC), JudgedBy(AUC, "ctr", 9), &position), "")
      << "the first task is the default";
  EXPECT_EQ(position.ShortDebugString(), JudgedAt40().ShortDebugString());
}

TEST(StartPosition, PatienceThatHasRunOutByAnotherMetricHasNotByThisOne) {
  RunPosition position = OverAt(1, 40, 3);
  position.set_stopped_early(true);
  EXPECT_THAT(BeginFrom(JudgedBy(AUC), JudgedBy(LOGLOSS), &position), HasSubstr("LOGLOSS"));
  EXPECT_EQ(position.next(), RunPosition::RESUME);
  EXPECT_FALSE(position.stopped_early());
}

TEST(StartPosition, ATrainingThatStaysOverKeepsItsBest) {
  for (const uint32_t epoch : {1u, 5u}) {
    RunPosition position = JudgedAt40();
    position.set_epoch(epoch);
    position.set_next(RunPosition::FINISH);
    EXPECT_EQ(BeginFrom(JudgedBy(AUC), JudgedBy(LOGLOSS), &position), "");
    EXPECT_EQ(position.best().cut(), "cut_0001_000002");
  }
}

TEST(StartPosition, AResumeThatAsksForMoreAndGetsNoneIsRefused) {
  EXPECT_TRUE(CheckTrainingEnd(JobOf(2), JobOf(2), OverAt(2, 40), LedgerUpTo(2)).ok())
      << "the test pass is left";
  const absl::Status status =
      CheckTrainingEnd(JobOf(2, 0, 3), JobOf(5, 0, 3), OverAt(2, 40, 3), LedgerUpTo(2));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("step 40: evaluation.patience (3) has run out"));
  RunPosition goes_on = OverAt(2, 40);
  goes_on.set_next(RunPosition::RESUME);
  EXPECT_TRUE(CheckTrainingEnd(JobOf(2), JobOf(3), goes_on, LedgerUpTo(2)).ok());
}

TEST(StartPosition, AnEpochThatHasBegunIsNotLeftOut) {
  RunPosition within;
  within.set_epoch(2);
  const absl::Status status = CheckTrainingEnd(JobOf(5), JobOf(2), within, LedgerUpTo(3));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("epochs: must be at least 3, because epoch 3 has begun"));
  EXPECT_TRUE(CheckTrainingEnd(JobOf(5), JobOf(3), within, LedgerUpTo(3)).ok());
  EXPECT_TRUE(CheckTrainingEnd(JobOf(5), JobOf(2), within, LedgerUpTo(2)).ok())
      << "the cut is of the end of epoch 2";
  EXPECT_TRUE(CheckTrainingEnd(JobOf(5), JobOf(1), RunPosition(), LedgerState()).ok());
}

TEST(StartPosition, AnEndThatTrainingHasPassedIsNotSet) {
  RunPosition position;
  position.set_step(40);
  position.set_validations_without_best(2);
  const auto check = [&position](const JobConfig& before, const JobConfig& job) {
    return std::string(CheckTrainingEnd(before, job, position, LedgerUpTo(1)).message());
  };
  EXPECT_THAT(check(JobOf(5), JobOf(5, 39)),
              HasSubstr("max_steps: must be at least 40, the step of "
                        "the cut that the run continues from, or 0"));
  EXPECT_EQ(check(JobOf(5), JobOf(5, 40)), "") << "what is trained is all that is wanted";
  EXPECT_EQ(check(JobOf(5, 80), JobOf(5)), "");
  EXPECT_EQ(check(JobOf(5, 39), JobOf(5, 39)), "")
      << "it was so, and a part may come after the end";
  EXPECT_THAT(check(JobOf(5), JobOf(5, 0, 1)),
              HasSubstr("evaluation.patience: must be at least 2"));
  EXPECT_EQ(check(JobOf(5), JobOf(5, 0, 2)), "");
  EXPECT_EQ(check(JobOf(5, 0, 1), JobOf(5, 0, 1)), "");
}

TEST(StartPosition, AScaleDoesNotEndTraining) {
  EXPECT_THAT(CheckScaleKeepsTraining(JobOf(5), JobOf(1), /*epoch=*/1, /*step=*/9).message(),
              HasSubstr("epochs: must be at least 2, because training is in epoch 2, got 1"));
  EXPECT_TRUE(CheckScaleKeepsTraining(JobOf(5), JobOf(2), 1, 9).ok());
  EXPECT_THAT(CheckScaleKeepsTraining(JobOf(5), JobOf(5, 9), 1, 9).message(),
              HasSubstr("max_steps: must be above 9"));
  EXPECT_TRUE(CheckScaleKeepsTraining(JobOf(5), JobOf(5, 10), 1, 9).ok());
  EXPECT_TRUE(CheckScaleKeepsTraining(JobOf(5, 9), JobOf(5, 9), 1, 9).ok()) << "not changed";
  EXPECT_TRUE(CheckScaleKeepsTraining(JobOf(5, 9), JobOf(5, 0), 1, 9).ok());
}

}  // namespace
}  // namespace satrap
