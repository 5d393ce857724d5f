#include "deploy/launcher/process/submission_end.h"

#include "deploy/launcher/testing/logged_run.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using SubmissionEndTest = LoggedRunTest;

TEST_F(SubmissionEndTest, ARunWithoutALogHasNotEnded) {
  EXPECT_FALSE(EndOfSubmission(dir_, 1).has_value());
  EXPECT_FALSE(EndOfSubmission(dir_ + "/none", 1).has_value());
}

TEST_F(SubmissionEndTest, ASubmissionEndsWithItsEnd) {
  Append("generation { generation: 1 submission: 1 }");
  EXPECT_FALSE(EndOfSubmission(dir_, 1).has_value());
  Append("end { state: STOPPED submission: 1 ending { text: 'stopped' } }");
  const auto end = EndOfSubmission(dir_, 1);
  ASSERT_TRUE(end.has_value());
  ASSERT_TRUE(end->end.has_value());
  EXPECT_EQ(end->end->ending().text(), "stopped");
  EXPECT_FALSE(EndOfSubmission(dir_, 2).has_value()) << "the next one has not begun yet";
}

TEST_F(SubmissionEndTest, ASubmissionIsOverWhenALaterOneHasBegun) {
  Append("generation { generation: 1 submission: 1 }");
  Append("end { state: FAILED submission: 1 }");
  Append("generation { generation: 2 submission: 2 }");
  const auto first = EndOfSubmission(dir_, 1);
  ASSERT_TRUE(first.has_value());
  EXPECT_FALSE(first->end.has_value()) << "how it ended says nothing of the run any more";
  EXPECT_FALSE(EndOfSubmission(dir_, 2).has_value());
}

TEST_F(SubmissionEndTest, TheLogOfAnOlderBuildHasOneSubmission) {
  Append("generation { generation: 1 }");
  Append("end { result { steps: 7 } }");
  const auto end = EndOfSubmission(dir_, 1);
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->end->result().steps(), 7u);
}

TEST_F(SubmissionEndTest, ARunThatHasFinishedIsTheEndOfEachSubmission) {
  Append("generation { generation: 1 submission: 1 }");
  Append("end { state: FINISHED submission: 1 result { steps: 7 } }");
  const auto end = EndOfSubmission(dir_, 2);
  ASSERT_TRUE(end.has_value()) << "no coordinator of it can begin";
  ASSERT_TRUE(end->end.has_value());
  EXPECT_EQ(end->end->result().steps(), 7u);
}

TEST_F(SubmissionEndTest, ASubmissionHasBegunWhenTheLogHasItsGeneration) {
  EXPECT_FALSE(HasBegun(dir_, 1));
  Append("generation { generation: 1 submission: 1 }");
  EXPECT_TRUE(HasBegun(dir_, 1));
  EXPECT_FALSE(HasBegun(dir_, 2));
  Append("generation { generation: 2 submission: 2 }");
  EXPECT_TRUE(HasBegun(dir_, 1));
  EXPECT_TRUE(HasBegun(dir_, 2));
}

}  // namespace
}  // namespace satrap
