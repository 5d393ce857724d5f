#include "deploy/report/run_warnings.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

MovingLabelRate Moving() {
  MovingLabelRate moving;
  moving.set_windows(64);
  moving.set_lowest(.125);
  moving.set_highest(.3);
  return moving;
}

TEST(RunWarningsTest, ARateThatMovesNamesBothCures) {
  RunResult result;
  EXPECT_THAT(WarningsOf(JobConfig(), result), IsEmpty());
  *result.mutable_moving_label_rate() = Moving();
  EXPECT_THAT(WarningsOf(JobConfig(), result),
              ElementsAre(AllOf(HasSubstr("from 12.5 % to 30 % in 64 windows"),
                                HasSubstr("data.shuffle_rows"), HasSubstr("order of time"))));
}

TEST(RunWarningsTest, ADoubtfulValidationAndTestAreNamed) {
  RunResult result;
  for (MetricValues* values : {result.mutable_valid(), result.mutable_test()}) {
    values->set_samples(1000);
    values->set_positives(500);
    values->set_auc(.6);
    values->set_normalised_entropy(.9);
  }
  EXPECT_THAT(WarningsOf(JobConfig(), result), IsEmpty());
  result.mutable_valid()->set_auc(.3);
  result.mutable_test()->set_normalised_entropy(3);
  EXPECT_THAT(WarningsOf(JobConfig(), result),
              ElementsAre(StartsWith("validation: AUC 0.3"), StartsWith("test: NE 3 ")));
  result.set_train_label_rate(.1);
  EXPECT_THAT(WarningsOf(JobConfig(), result),
              ElementsAre(HasSubstr("50 % of its labels"), HasSubstr("but 10 % of the labels")));
}

TEST(RunWarningsTest, ADiskThatHangsIsToldWhileItDoes) {
  TrainProgress progress;
  EXPECT_THAT(WarningsOf(progress), IsEmpty());
  progress.set_metrics_file_hangs_seconds(12);
  EXPECT_THAT(WarningsOf(progress), ElementsAre(HasSubstr("for 12 s: the disk hangs")));
  progress.set_metrics_lines_dropped(7);
  EXPECT_THAT(WarningsOf(progress), ElementsAre(HasSubstr("hangs"), HasSubstr("lacks 7 lines")));
}

TEST(RunWarningsTest, AWarningIsGivenOnceThoughItsNumbersChange) {
  ProgressWarnings warnings((JobConfig()));
  TrainProgress progress;
  EXPECT_THAT(warnings.New(progress), IsEmpty());
  *progress.mutable_moving_label_rate() = Moving();
  EXPECT_THAT(warnings.New(progress), ElementsAre(HasSubstr("label rate")));
  progress.mutable_moving_label_rate()->set_highest(.4);
  progress.set_metrics_file_hangs_seconds(6);
  EXPECT_THAT(warnings.New(progress), ElementsAre(HasSubstr("hangs")));
  progress.set_metrics_file_hangs_seconds(7);
  EXPECT_THAT(warnings.New(progress), IsEmpty());
}

TEST(RunWarningsTest, TheSecondDoubtfulValidationInARowIsTold) {
  ProgressWarnings warnings((JobConfig()));
  TrainProgress progress;
  MetricValues* const values = progress.mutable_last_valid();
  values->set_samples(1000);
  values->set_positives(500);
  values->set_normalised_entropy(1.5);
  EXPECT_THAT(warnings.New(progress), IsEmpty());
  EXPECT_THAT(warnings.New(progress), IsEmpty()) << "it is still the first";
  values->set_normalised_entropy(.9);
  EXPECT_THAT(warnings.New(progress), IsEmpty());
  values->set_normalised_entropy(1.25);
  EXPECT_THAT(warnings.New(progress), IsEmpty());
  values->set_normalised_entropy(1.125);
  EXPECT_THAT(warnings.New(progress), ElementsAre(StartsWith("validation: NE 1.125 is above 1")));
  values->set_normalised_entropy(1.2);
  EXPECT_THAT(warnings.New(progress), IsEmpty());
}

}  // namespace
}  // namespace satrap
