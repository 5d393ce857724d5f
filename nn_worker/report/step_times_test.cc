#include "nn_worker/report/step_times.h"

#include <string>
#include <vector>

#include "common/testing/manual_executor.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

class CountingObserver final : public RankObserver {
 public:
  void OnPhase(absl::string_view) override { ++events; }
  void OnStep(const StepEvent&) override { ++events; }
  void OnGradientNorm(double, float) override { ++events; }
  void OnEvaluation(const EvaluationEvent&) override { ++events; }
  void OnCutBegun() override { ++events; }
  void OnCutPause(double) override { ++events; }
  void OnCutEnded(const CutOutcome&) override { ++events; }
  int events = 0;
};

class StepTimesTest : public testing::Test {
 protected:
  void StepAfter(int64_t us) {
    clock_.AdvanceBy(us);
    StepEvent event;
    event.steps = ++steps_;
    times_.OnStep(event);
  }

  ManualExecutor clock_;
  CountingObserver next_;
  std::vector<uint64_t> first_steps_;
  std::vector<std::string> lines_;
  StepTimes times_{&clock_, 3, [this](uint64_t step) { first_steps_.push_back(step); },
                   [this](const std::string& line) { lines_.push_back(line); }, &next_};
  uint64_t steps_ = 40;
};

TEST_F(StepTimesTest, TellsOfTheFirstStepOnly) {
  StepAfter(100);
  StepAfter(100);
  EXPECT_EQ(first_steps_, std::vector<uint64_t>{41});
}

TEST_F(StepTimesTest, APauseHasTheGapAroundTheCutBesideTheUsualTime) {
  StepAfter(5'000'000);
  StepAfter(10'000);
  StepAfter(12'000);
  StepAfter(90'000);
  times_.OnCutBegun();
  times_.OnCutPause(.005);
  StepAfter(17'000);
  EXPECT_EQ(lines_, std::vector<std::string>{
                        "{\"event\":\"pause\",\"generation\":3,\"step\":45,\"seconds\":0.005000,"
                        "\"gap_seconds\":0.017000,\"usual_seconds\":0.012000}"});
}

TEST_F(StepTimesTest, TheGapOfACutIsNoUsualTime) {
  StepAfter(0);
  StepAfter(10'000);
  for (int i = 0; i < 5; ++i) {
    times_.OnCutPause(1);
    StepAfter(1'000'000);
  }
  ASSERT_EQ(lines_.size(), 5u);
  EXPECT_NE(lines_[4].find("\"usual_seconds\":0.010000"), std::string::npos) << lines_[4];
}

TEST_F(StepTimesTest, TheUsualTimeIsThatOfTheLastSteps) {
  StepAfter(0);
  for (size_t i = 0; i < StepTimes::kSteps; ++i) StepAfter(1'000);
  for (size_t i = 0; i < StepTimes::kSteps; ++i) StepAfter(2'000);
  times_.OnCutPause(0);
  StepAfter(1);
  ASSERT_EQ(lines_.size(), 1u);
  EXPECT_NE(lines_[0].find("\"usual_seconds\":0.002000"), std::string::npos) << lines_[0];
}

TEST_F(StepTimesTest, OtherPhasesAreNeitherPausesNorSteps) {
  StepAfter(0);
  StepAfter(10'000);
  times_.OnPhase("saving");
  times_.OnPhase("training");
  times_.OnCutPause(60);
  StepAfter(60'000'000);
  EXPECT_TRUE(lines_.empty());
  times_.OnCutPause(0);
  StepAfter(20'000);
  ASSERT_EQ(lines_.size(), 1u);
  EXPECT_NE(lines_[0].find("\"usual_seconds\":0.010000"), std::string::npos) << lines_[0];
}

TEST_F(StepTimesTest, EveryEventIsHandedOn) {
  StepAfter(1);
  times_.OnGradientNorm(1, 1);
  times_.OnPhase("validating");
  times_.OnEvaluation(EvaluationEvent());
  times_.OnCutBegun();
  times_.OnCutPause(1);
  times_.OnCutEnded(CutOutcome());
  EXPECT_EQ(next_.events, 7);
}

}  // namespace
}  // namespace satrap
