#include "common/config/testing/range_check.h"

#include <cstdlib>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/job.pb.h"

namespace satrap {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;

BorderCase BorderOf(const std::string& field, const Rules& rules = {}) {
  for (BorderCase& border : BordersOf(JobConfig::descriptor(), rules)) {
    if (border.field == field) return border;
  }
  ADD_FAILURE() << field << " has no range";
  return {};
}

TEST(RangeCheckTest, OfAWholeNumberBothSidesOfEachBorderAreTried) {
  const BorderCase border = BorderOf("max_staleness");
  EXPECT_THAT(border.good, ElementsAre("1", "256"));
  EXPECT_THAT(border.bad, ElementsAre("0", "257"));
  EXPECT_EQ(border.range, "in [1, 256]");
}

TEST(RangeCheckTest, OfARealNumberTheOpenEndIsBadAndWhatIsBesideItGood) {
  const BorderCase border = BorderOf("dense_optimizer.adam.beta1");
  ASSERT_EQ(border.good.size(), 2u);
  EXPECT_EQ(border.good[0], "0");
  EXPECT_LT(std::strtod(border.good[1].c_str(), nullptr), 1);
  EXPECT_GT(std::strtod(border.good[1].c_str(), nullptr), .999);
  ASSERT_EQ(border.bad.size(), 3u);
  EXPECT_LT(std::strtod(border.bad[0].c_str(), nullptr), 0);
  EXPECT_EQ(border.bad[1], "1");
  EXPECT_EQ(border.bad[2], "nan");
}

TEST(RangeCheckTest, ARuleAddsWhatTheGoodValuesNeed) {
  const std::string field = "dense_optimizer.momentum.dampening";
  EXPECT_THAT(BorderOf(field).with, Not(Contains("dense_optimizer.momentum.form=RATE_OUTSIDE")));
  EXPECT_THAT(BorderOf(field, OptimizerRules()).with,
              Contains("dense_optimizer.momentum.form=RATE_OUTSIDE"));
}

TEST(RangeCheckTest, AFieldBelowAListIsThatOfItsFirstElementWhichIsMade) {
  const std::set<std::string> fields = FieldsOf(BordersOf(JobConfig::descriptor()));
  EXPECT_THAT(fields, Contains("tables[0].id"));
  JobConfig job;
  AddElements("tables[0].segments[0].dim", &job);
  AddElements("tables[0].id", &job);
  ASSERT_EQ(job.tables_size(), 1) << "it is there already";
  EXPECT_EQ(job.tables(0).segments_size(), 1);
}

TEST(RangeCheckTest, NumbersAreFoundWhereverTheyAreAndNothingElse) {
  const std::set<std::string> fields = NumericFields(JobConfig::descriptor());
  EXPECT_THAT(fields, Contains("max_staleness"));
  EXPECT_THAT(fields, Contains("tables[0].segments[0].dim"));
  EXPECT_THAT(fields, Not(Contains("name")));
  EXPECT_THAT(fields, Not(Contains("mode")));
}

}  // namespace
}  // namespace satrap
