#include "common/config/job_facts.h"

#include "common/config/text_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

JobConfig JobOf(const std::string& text) {
  JobConfig job;
  EXPECT_TRUE(ParseText(text, "job", &job).ok());
  return job;
}

TEST(JobFactsTest, AFeaturesTableIsFoundByItsName) {
  const JobConfig job = JobOf(R"(
      tables { name: 'users' } tables { name: 'items' }
      data { features { name: 'item' table: 'items' } features { name: 'user' table: 'users' } })");
  EXPECT_EQ(TableIndexOf(job.data().features(0), job), 1);
  EXPECT_EQ(TableIndexOf(job.data().features(1), job), 0);
}

TEST(JobFactsDeathTest, AFeatureWithoutATableIsNamed) {
  const JobConfig job = JobOf("data { features { name: 'item' table: 'items' } }");
  EXPECT_DEATH(TableIndexOf(job.data().features(0), job), "feature item names no table");
}

TEST(JobFactsTest, ARowHasTheValuesOfAllItsSegments) {
  const JobConfig job =
      JobOf("tables { segments { dim: 16 } segments { dim: 1 } } tables { name: 'empty' }");
  EXPECT_EQ(RowValues(job.tables(0)), 17);
  EXPECT_EQ(RowValues(job.tables(1)), 0);
}

TEST(JobFactsTest, AColumnAndAnIdSpaceHaveTheNameOfTheFeatureUnlessTheyAreGiven) {
  const JobConfig job = JobOf(R"(
      data { features { name: 'clicked' }
             features { name: 'shown' column: 'items' id_space: 'item' }
             numerics { name: 'price' } numerics { name: 'log_price' column: 'price' } })");
  EXPECT_EQ(ColumnOf(job.data().features(0)), "clicked");
  EXPECT_EQ(IdSpaceOf(job.data().features(0)), "clicked");
  EXPECT_EQ(ColumnOf(job.data().features(1)), "items");
  EXPECT_EQ(IdSpaceOf(job.data().features(1)), "item");
  EXPECT_EQ(ColumnOf(job.data().numerics(0)), "price");
  EXPECT_EQ(ColumnOf(job.data().numerics(1)), "price");
}

TEST(JobFactsTest, QuotesMeanNothingBetweenTabsUnlessTheJobSaysSo) {
  CsvFormat csv;
  csv.set_separator(",");
  EXPECT_TRUE(QuotesOf(csv));
  csv.set_separator("\t");
  EXPECT_FALSE(QuotesOf(csv));
  csv.set_quotes(true);
  EXPECT_TRUE(QuotesOf(csv));
}

}  // namespace
}  // namespace satrap
