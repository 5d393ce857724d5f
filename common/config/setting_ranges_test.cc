#include "common/config/setting_ranges.h"

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/config/range_check.h"
#include "common/config/validation_check.h"
#include "gtest/gtest.h"
#include "proto/schedule.pb.h"

namespace satrap {
namespace {

std::string TextOf(const std::string& text) {
  SettingRange range;
  CHECK_OK(ParseText(text, "range", &range));
  return RangeText(range);
}

TEST(SettingRanges, AreCalledAsErrorsCallThem) {
  EXPECT_EQ(TextOf(""), "finite");
  EXPECT_EQ(TextOf("above: 0"), "finite and positive");
  EXPECT_EQ(TextOf("low: 0"), "finite and not negative");
  EXPECT_EQ(TextOf("low: 2"), "finite and at least 2");
  EXPECT_EQ(TextOf("low: 1 high: 1152921504606846976"), "in [1, 1152921504606846976]");
  EXPECT_EQ(TextOf("low: 0 below: 1"), "in [0, 1)");
  EXPECT_EQ(TextOf("low: 0.5 high: 1"), "in [0.5, 1]");
  EXPECT_EQ(TextOf("above: 0 below: 1"), "above 0 and below 1");
  EXPECT_EQ(TextOf("above: 0 high: 1"), "above 0 and at most 1");
  EXPECT_EQ(TextOf("low: -inf high: 1"), "at most 1");
}

std::string Problem(const google::protobuf::Message& message) {
  Problems problems;
  CheckRanges(message, "at.", &problems);
  return std::string(problems.ToStatus().message());
}

TEST(SettingRanges, AreCheckedInMessagesThatAreSetWithTheDefaultsOfTheirFields) {
  LearningRateSchedule schedule;
  EXPECT_EQ(Problem(schedule), "");
  schedule.mutable_step();
  EXPECT_EQ(Problem(schedule), "  at.step.every_steps: must be in [1, 1152921504606846976], got 0");
  Problems own;
  CheckOwnRanges(schedule, "at.", &own);
  EXPECT_TRUE(own.ToStatus().ok()) << "the step is below";
}

TEST(SettingRanges, AreCheckedForEachElementOfAList) {
  SyntheticFormat synthetic;
  synthetic.add_vocabulary_sizes(1);
  synthetic.add_vocabulary_sizes(0);
  EXPECT_EQ(Problem(synthetic), "  at.vocabulary_sizes[1]: must be in [1, 281474976710656], got 0");
}

// Whether a line of `problems` says that the field is out of its range.
bool IsRefused(const std::string& problems, const BorderCase& border) {
  for (const absl::string_view line : absl::StrSplit(problems, '\n')) {
    if (absl::StartsWith(line, border.field) &&
        absl::StrContains(line, absl::StrCat(": must be ", border.range, ", got "))) {
      return true;
    }
  }
  return false;
}

// Tests that the validator checks the range of every field, in all sections of the job. Problems of
// other kinds do not matter here.
TEST(SettingRanges, AreThoseThatTheValidatorHoldsEveryFieldOfAJobTo) {
  const std::vector<BorderCase> borders = BordersOf(JobConfig::descriptor());
  EXPECT_GT(borders.size(), 150u);
  for (const BorderCase& border : borders) {
    JobConfig job = SmallJob();
    AddElements(border.field, &job);
    for (const std::string& value : border.good) {
      const std::string set = absl::StrCat(border.field, "=", value);
      EXPECT_FALSE(IsRefused(ProblemsOf(job, {set}), border)) << set;
    }
    for (const std::string& value : border.bad) {
      const std::string set = absl::StrCat(border.field, "=", value);
      EXPECT_TRUE(IsRefused(ProblemsOf(job, {set}), border)) << set;
    }
  }
}

}  // namespace
}  // namespace satrap
