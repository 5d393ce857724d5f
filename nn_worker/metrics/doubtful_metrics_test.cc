#include "nn_worker/metrics/doubtful_metrics.h"

#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

constexpr double kTrainRate = .2;

// The values of a healthy pass.
MetricValues Values() {
  MetricValues values;
  values.set_samples(1000);
  values.set_positives(200);
  values.set_auc(.75);
  values.set_logloss(.4);
  values.set_normalised_entropy(.85);
  values.set_calibration(1.1);
  return values;
}

std::vector<std::string> Doubts(const MetricValues& values, const JobConfig& job = JobConfig()) {
  return DoubtfulMetrics(job, "test", values, kTrainRate);
}

TEST(DoubtfulMetricsTest, AHealthyModelIsNotDoubted) {
  MetricValues values = Values();
  EXPECT_THAT(Doubts(values), IsEmpty());
  // Values at the limits are not doubtful.
  values.set_normalised_entropy(1);
  values.set_auc(.45);
  for (const double calibration : {.5, 2.0}) {
    values.set_calibration(calibration);
    EXPECT_THAT(Doubts(values), IsEmpty());
  }
}

TEST(DoubtfulMetricsTest, EachOfThreeValuesIsEnough) {
  MetricValues values = Values();
  values.set_normalised_entropy(1.25);
  EXPECT_THAT(Doubts(values), ElementsAre(StartsWith("test: NE 1.25 is above 1")));
  values = Values();
  values.set_auc(.38);
  EXPECT_THAT(Doubts(values), ElementsAre(HasSubstr("AUC 0.3800 is below .45")));
  for (const double calibration : {.49, 2.5}) {
    values = Values();
    values.set_calibration(calibration);
    EXPECT_THAT(Doubts(values), ElementsAre(HasSubstr("is outside [.5, 2]")));
  }
}

TEST(DoubtfulMetricsTest, SeveralAreOneLine) {
  MetricValues values = Values();
  values.set_normalised_entropy(10.4);
  values.set_auc(.38);
  EXPECT_THAT(Doubts(values),
              ElementsAre(AllOf(HasSubstr("NE 10.4 is"), HasSubstr("; AUC 0.3800 is"),
                                Not(HasSubstr("\n")))));
}

TEST(DoubtfulMetricsTest, FewSamplesOfAClassAndValuesThatAreNotDefinedSayNothing) {
  MetricValues values = Values();
  values.set_auc(.38);
  for (const uint64_t positives : {uint64_t{99}, uint64_t{901}}) {
    values.set_positives(positives);
    EXPECT_THAT(Doubts(values), IsEmpty());
  }
  values.set_positives(900);
  EXPECT_THAT(Doubts(values).size(), 1u);
  values.clear_positives();
  EXPECT_THAT(Doubts(values), IsEmpty()) << "no two classes";
  values = Values();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  values.set_auc(nan);
  values.set_normalised_entropy(nan);
  values.set_calibration(nan);
  EXPECT_THAT(Doubts(values), IsEmpty());
}

TEST(DoubtfulMetricsTest, NamesTheNumericsThatNobodyHasScaled) {
  JobConfig job;
  for (const char* name : {"age", "income", "wealth", "debt", "tax", "bonus"}) {
    job.mutable_data()->add_numerics()->set_name(name);
  }
  job.mutable_data()->mutable_numerics(0)->set_transform(NumericConfig::STANDARDISE);
  MetricValues values = Values();
  values.set_normalised_entropy(10.4);
  EXPECT_THAT(Doubts(values, job),
              ElementsAre(AllOf(
                  HasSubstr("Likely: large values of income, wealth, debt, tax, bonus, which"),
                  HasSubstr("`transform`"), Not(HasSubstr("age")))));
  job.mutable_data()->add_numerics()->set_name("rent");
  EXPECT_THAT(Doubts(values, job), ElementsAre(HasSubstr("bonus and 1 more, which")));
  for (NumericConfig& numeric : *job.mutable_data()->mutable_numerics()) {
    numeric.set_transform(NumericConfig::LOG1P);
  }
  EXPECT_THAT(Doubts(values, job), ElementsAre(HasSubstr("learning rates are too high")));
}

TEST(DoubtfulMetricsTest, NamesTheFeaturesWhoseValuesMayBeLargeIfTheEntropyIsHuge) {
  JobConfig ffm;
  ffm.mutable_data()->mutable_libffm()->set_num_fields(2);
  for (const char* name : {"f0", "f1"}) ffm.mutable_data()->add_features()->set_name(name);
  MetricValues values = Values();
  values.set_normalised_entropy(953);
  EXPECT_THAT(
      Doubts(values, ffm),
      ElementsAre(HasSubstr("values that come with the ids of f0, f1: rows are multiplied")));
  JobConfig csv;
  ColumnConfig* const column = csv.mutable_data()->mutable_csv()->add_columns();
  column->set_name("basket");
  for (const char* name : {"basket", "user"}) csv.mutable_data()->add_features()->set_name(name);
  EXPECT_THAT(Doubts(values, csv), ElementsAre(HasSubstr("learning rates")));
  column->set_value_separator(":");
  EXPECT_THAT(Doubts(values, csv), ElementsAre(HasSubstr("come with the ids of basket: rows")));
  values.set_normalised_entropy(1.2);
  EXPECT_THAT(Doubts(values, csv), ElementsAre(HasSubstr("learning rates"))) << "as any other job";
}

TEST(DoubtfulMetricsTest, NamesARateOfLabelsThatIsFarFromTheTrainedOne) {
  JobConfig job;
  job.mutable_data()->add_numerics()->set_name("age");
  MetricValues values = Values();
  values.set_positives(500);
  values.set_calibration(.4);
  EXPECT_THAT(Doubts(values, job),
              ElementsAre(HasSubstr("50 % of its labels are positive, but 20 % of the labels")));
  EXPECT_THAT(DoubtfulMetrics(job, "test", values, absl::nullopt),
              ElementsAre(HasSubstr("large values of age")));
}

TEST(DoubtfulMetricsTest, AnOrderThatIsUpsideDownMayBeThatOfTheLabels) {
  MetricValues values = Values();
  values.set_auc(.3);
  EXPECT_THAT(Doubts(values), ElementsAre(HasSubstr("Likely: its labels mean the opposite")));
}

TEST(DoubtfulMetricsTest, EachTaskIsNamedAndTheTrainedRateIsThatOfTheJudgedOne) {
  JobConfig job;
  job.mutable_evaluation()->set_task("buy");
  MetricValues values = Values();
  for (const char* name : {"click", "buy", "stars"}) {
    TaskMetricValues* const task = values.add_tasks();
    task->set_name(name);
    *task->mutable_values() = Values();
    task->mutable_values()->set_positives(500);
    task->mutable_values()->set_auc(.4);
  }
  values.mutable_tasks(2)->mutable_values()->clear_positives();
  EXPECT_THAT(Doubts(values, job),
              ElementsAre(AllOf(StartsWith("test, task 'click': AUC"), HasSubstr("opposite")),
                          AllOf(StartsWith("test, task 'buy': AUC"), HasSubstr("50 %"))));
}

}  // namespace
}  // namespace satrap
