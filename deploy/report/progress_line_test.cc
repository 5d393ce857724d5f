#include "deploy/report/progress_line.h"

#include <unistd.h>

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

StatusAnswer Training() {
  StatusAnswer status;
  status.set_state(RUNNING);
  TrainProgress* train = status.mutable_train();
  train->set_phase("training");
  train->set_step(120);
  train->set_samples(250);
  train->set_samples_per_second(54321);
  train->set_window_loss(0.47123);
  train->set_window_auc(0.73124);
  train->set_staleness_max(4);
  train->set_staleness_mean(1.8);
  train->set_seconds_left(12);
  train->set_expected_samples(1000);
  return status;
}

// Uses a pipe as the terminal.
class ProgressLineTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(pipe(pipe_), 0); }
  void TearDown() override { close(pipe_[0]); }
  std::string Written() {
    close(pipe_[1]);
    std::string text(65536, '\0');
    text.resize(read(pipe_[0], text.data(), text.size()));
    return text;
  }
  int pipe_[2];
};

TEST_F(ProgressLineTest, ShowsWhatIsKnown) {
  EXPECT_EQ(ProgressText(Training()),
            "training  epoch 1  step 120 | 54,321 samples/s | loss 0.4712 | auc 0.7312 | "
            "staleness 1.8 (max 4) | 12.0 s left");
  StatusAnswer status = Training();
  status.mutable_train()->set_window_auc(std::nan(""));
  status.mutable_train()->set_seconds_left(-1);
  EXPECT_THAT(ProgressText(status), Not(HasSubstr("auc")));
  EXPECT_THAT(ProgressText(status), Not(HasSubstr("left")));
  EXPECT_EQ(ProgressText(StatusAnswer()), "starting");
  close(pipe_[1]);
}

TEST_F(ProgressLineTest, AValidationWithoutAMetricShowsNoLoglossOfZero) {
  StatusAnswer status = Training();
  status.mutable_train()->mutable_last_valid()->set_samples(100);
  EXPECT_THAT(ProgressText(status), Not(HasSubstr("valid")));
  status.mutable_train()->mutable_last_valid()->set_logloss(.5);
  EXPECT_THAT(ProgressText(status), HasSubstr(" | valid logloss 0.5000"));
  close(pipe_[1]);
}

TEST_F(ProgressLineTest, ShowsHowFarARunIsBehindItsTopics) {
  StatusAnswer status = Training();
  status.mutable_train()->set_seconds_left(-1);
  status.mutable_topics()->set_lag_messages(1234);
  EXPECT_THAT(ProgressText(status), ::testing::EndsWith("staleness 1.8 (max 4) | lag 1,234"));
  status.mutable_topics()->set_lag_seconds(0.84);
  EXPECT_THAT(ProgressText(status), ::testing::EndsWith(" | lag 1,234 (0.8 s)"));
  status.mutable_topics()->set_watermark_ms(1777627800500);
  EXPECT_THAT(ProgressText(status), ::testing::EndsWith(" | watermark 2026-05-01T09:30:00Z"));
  close(pipe_[1]);
}

TEST_F(ProgressLineTest, ShowsNormsAndReductionsWhereTheJobHasThem) {
  StatusAnswer status = Training();
  TrainProgress* train = status.mutable_train();
  train->set_seconds_left(-1);
  train->mutable_gradient_norms()->set_steps(120);
  train->mutable_gradient_norms()->set_clipped_steps(3);
  train->mutable_gradient_norms()->set_sum(300);
  train->mutable_gradient_norms()->set_last(12.25);
  EXPECT_THAT(ProgressText(status),
              ::testing::EndsWith(" | norm 12.25 (mean 2.5, 3 of 120 steps clipped)"));
  train->clear_gradient_norms();
  train->set_learning_rate_factor(.01);
  train->set_reductions(2);
  EXPECT_THAT(ProgressText(status),
              ::testing::EndsWith("staleness 1.8 (max 4) | rates x 0.01 (2 reductions)"));
  close(pipe_[1]);
}

TEST_F(ProgressLineTest, ARunWithoutEndShowsSamplesInPlaceOfEpochAndTimeLeft) {
  StatusAnswer status = Training();
  status.mutable_train()->set_endless(true);
  EXPECT_EQ(ProgressText(status),
            "training  step 120 | 250 samples | 54,321 samples/s | loss 0.4712 | auc 0.7312 | "
            "staleness 1.8 (max 4)");
  close(pipe_[1]);
}

TEST_F(ProgressLineTest, ARunThatHasFailedIsStoppingAndNotStarting) {
  StatusAnswer status = Training();
  status.set_state(FAILED);
  EXPECT_EQ(ProgressText(status), "stopping");
  status.set_state(FINISHED);
  EXPECT_EQ(ProgressText(status), "finishing");
  close(pipe_[1]);
}

TEST_F(ProgressLineTest, PlainLinesComeSeldomUnlessThePhaseChanges) {
  ProgressLine line(pipe_[1], /*is_terminal=*/false);
  StatusAnswer status = Training();
  line.Show(status, 0);
  line.Show(status, 1000);
  status.mutable_train()->set_phase("testing");
  line.Show(status, 1100);
  line.Show(status, 7000);
  line.End();
  const std::string text = Written();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3);
  EXPECT_THAT(text, Not(HasSubstr("\r")));
}

TEST_F(ProgressLineTest, ATerminalGetsOneLineWithABar) {
  ProgressLine line(pipe_[1], /*is_terminal=*/true, [](int) { return 200; });
  line.Show(Training(), 0);
  line.Show(Training(), 1000);
  line.End();
  const std::string text = Written();
  EXPECT_THAT(text, HasSubstr("\r[#####...............]  25% training"));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
}

TEST_F(ProgressLineTest, WhatDoesNotFitTheTerminalGoesWholeAndTheLeastImportantFirst) {
  const std::string all =
      "[#####...............]  25% training  epoch 1  step 120 | 54,321 samples/s | loss 0.4712 | "
      "auc 0.7312 | staleness 1.8 (max 4) | 12.0 s left";
  // The last column stays free.
  EXPECT_EQ(FittedProgress(Training(), all.size() + 1), all);
  EXPECT_EQ(FittedProgress(Training(), all.size()),
            "[#####...............]  25% training  epoch 1  step 120 | 54,321 samples/s | "
            "loss 0.4712 | auc 0.7312 | 12.0 s left");
  EXPECT_EQ(FittedProgress(Training(), 80),
            " 25% training  epoch 1  step 120 | 54,321 samples/s | loss 0.4712 | 12.0 s left");
  EXPECT_EQ(FittedProgress(Training(), 40), " 25% training  epoch 1  step 120");
  EXPECT_EQ(FittedProgress(Training(), 6), "train");
  EXPECT_EQ(FittedProgress(Training(), 1), "");
  close(pipe_[1]);
}

TEST_F(ProgressLineTest, NoLineIsAsLongAsTheTerminalIsWideWhateverTheRunHas) {
  StatusAnswer status = Training();
  TrainProgress* train = status.mutable_train();
  train->mutable_gradient_norms()->set_steps(120);
  train->mutable_gradient_norms()->set_sum(300);
  train->set_learning_rate_factor(.01);
  train->mutable_last_valid()->set_auc(.77);
  status.mutable_topics()->set_lag_messages(1234);
  status.mutable_topics()->set_watermark_ms(1777627800500);
  for (size_t columns = 1; columns < 300; ++columns) {
    EXPECT_LT(FittedProgress(status, columns).size(), columns);
  }
  close(pipe_[1]);
}

TEST_F(ProgressLineTest, ABarThatHasNoRoomGoesBeforeTheText) {
  EXPECT_EQ(FittedBar("[==] ", "7 lines", 13), "[==] 7 lines");
  EXPECT_EQ(FittedBar("[==] ", "7 lines", 12), "7 lines") << "the last column stays free";
  EXPECT_EQ(FittedBar("[==] ", "7 lines", 7), "7 line");
  EXPECT_EQ(FittedBar("[==] ", "7 lines", 0), "");
  close(pipe_[1]);
}

TEST_F(ProgressLineTest, TheWidthIsAskedForAtEachWrite) {
  size_t columns = 200;
  ProgressLine line(pipe_[1], /*is_terminal=*/true, [&columns](int) { return columns; });
  line.Show(Training(), 0);
  columns = 20;
  line.Show(Training(), 1000);
  line.End();
  const std::string text = Written();
  EXPECT_THAT(text, HasSubstr("staleness 1.8 (max 4) | 12.0 s left\x1b[K"));
  EXPECT_THAT(text, ::testing::EndsWith("\r 25% training\x1b[K\n"));
}

TEST_F(ProgressLineTest, WhatIsNoTerminalIsTakenForOneOf80Columns) {
  EXPECT_EQ(TerminalColumns(pipe_[1]), 80u);
  close(pipe_[1]);
}

}  // namespace
}  // namespace satrap
