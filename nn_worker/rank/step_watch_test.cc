#include "nn_worker/rank/step_watch.h"

#include <utility>
#include <vector>

#include "common/testing/manual_executor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

constexpr int64_t kSecond = 1'000'000;

// Keeps the callbacks, so that the test decides when a step or a score ends.
class HeldTrainer final : public StepTrainer {
 public:
  std::unique_ptr<PreparedPart> Prepare(PartInput) override { return nullptr; }
  void JoinStep(uint64_t, std::unique_ptr<PreparedPart>, StepFlags,
                absl::AnyInvocable<void(absl::StatusOr<StepResult>)> done) override {
    end = [done = std::move(done)]() mutable { done(StepResult()); };
  }
  void EndStep(double, absl::AnyInvocable<void(absl::StatusOr<StepEnd>)> done) override {
    end = [done = std::move(done)]() mutable { done(StepEnd()); };
  }
  void Score(PartInput, absl::AnyInvocable<void(absl::Status)> done) override {
    end = [done = std::move(done)]() mutable { done(absl::OkStatus()); };
  }
  void MergeEvaluation(absl::AnyInvocable<void(absl::StatusOr<MetricValues>)> done) override {
    end = [done = std::move(done)]() mutable { done(MetricValues()); };
  }
  void BeginCut(CutPlan, absl::AnyInvocable<void(absl::StatusOr<CutMarked>)> done,
                absl::AnyInvocable<void(absl::StatusOr<CutOutcome>)>) override {
    end = [done = std::move(done)]() mutable { done(CutMarked()); };
  }
  void AwaitCut(absl::AnyInvocable<void(absl::StatusOr<bool>)> done) override {
    end = [done = std::move(done)]() mutable { done(true); };
  }
  void RestoreModel(const std::string&, absl::AnyInvocable<void(absl::Status)> done) override {
    end = [done = std::move(done)]() mutable { done(absl::OkStatus()); };
  }

  absl::AnyInvocable<void()> end;
};

class StepWatchTest : public testing::Test {
 protected:
  void Join(uint64_t step) {
    watch_->JoinStep(step, nullptr, StepFlags(), [this](absl::StatusOr<StepResult> result) {
      EXPECT_TRUE(result.ok());
      ++ended_;
    });
  }
  void Pass(int64_t seconds) { executor_.AdvanceBy(seconds * kSecond); }

  ManualExecutor executor_;
  HeldTrainer trainer_;
  StepWatch::Activity activity_{nullptr};
  std::vector<std::pair<std::string, int64_t>> told_;
  int ended_ = 0;
  std::unique_ptr<StepWatch> watch_ = std::make_unique<StepWatch>(
      &trainer_, &activity_, &executor_,
      [this](const std::string& doing, int64_t seconds) { told_.emplace_back(doing, seconds); });
};

TEST_F(StepWatchTest, AStepThatTakesAMinuteIsToldWithWhatItDoes) {
  Join(7);
  activity_ = "computes the network";
  Pass(59);
  EXPECT_THAT(told_, IsEmpty());
  Pass(1);
  EXPECT_THAT(told_, ElementsAre(Pair("trains step 8: computes the network", 60)));
}

TEST_F(StepWatchTest, ItIsToldAgainWhenTwiceTheTimeHasPassed) {
  Join(7);
  Pass(1000);
  EXPECT_THAT(told_, ElementsAre(Pair("trains step 8", 60), Pair("trains step 8", 120),
                                 Pair("trains step 8", 240), Pair("trains step 8", 480),
                                 Pair("trains step 8", 960)));
}

TEST_F(StepWatchTest, StepsThatEndAreNotTold) {
  for (uint64_t step = 0; step < 10; ++step) {
    Join(step);
    Pass(50);
    trainer_.end();
  }
  EXPECT_EQ(ended_, 10);
  EXPECT_THAT(told_, IsEmpty());
  // After each step, the wait is counted from 0 again, and it doubles again from its first length.
  for (int i = 0; i < 2; ++i) {
    Join(10);
    Pass(60);
    trainer_.end();
  }
  EXPECT_THAT(told_, ElementsAre(Pair("trains step 11", 60), Pair("trains step 11", 60)));
}

TEST_F(StepWatchTest, BetweenStepsItWaitsForAnEmbeddingWorker) {
  Join(0);
  trainer_.end();
  activity_ = "adds up sums";  // the last that the step did
  Pass(60);
  EXPECT_THAT(told_,
              ElementsAre(Pair("waits for a part from an embedding worker, or for the answer to "
                               "a push",
                               60)));
}

TEST_F(StepWatchTest, OtherCallsAreToldByName) {
  watch_->AwaitCut([](absl::StatusOr<bool> committed) { EXPECT_TRUE(*committed); });
  Pass(60);
  trainer_.end();
  watch_->Score(PartInput(), [](absl::Status) {});
  Pass(60);
  EXPECT_THAT(told_,
              ElementsAre(Pair("waits until a cut is written", 60), Pair("scores a part", 60)));
}

TEST_F(StepWatchTest, NothingIsToldOnceTheRunIsOver) {
  watch_->Stop();
  Pass(100);
  EXPECT_THAT(told_, IsEmpty());
}

TEST_F(StepWatchTest, NothingIsToldOnceItIsGone) {
  Join(0);
  watch_.reset();
  Pass(100);
  EXPECT_THAT(told_, IsEmpty());
  trainer_.end();
  EXPECT_EQ(ended_, 1);
}

}  // namespace
}  // namespace satrap
