#include "nn_worker/metrics/score_windows.h"

#include <cmath>
#include <limits>
#include <vector>

#include "common/numeric/random.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

constexpr int64_t kHour = 3'600'000;

class ScoreWindowsTest : public testing::Test {
 protected:
  static EvaluationConfig Config(int64_t samples, double data_seconds) {
    EvaluationConfig config;
    config.set_window_samples(samples);
    config.set_window_data_seconds(data_seconds);
    return config;
  }
  ScoreWindows::Sink Sink() {
    return [this](const ScoreWindow& window) { ended_.push_back(window); };
  }
  // Adds the next step. This rank's part has these times, and its labels and logits alternate.
  void Step(ScoreWindows* windows, const std::vector<int64_t>& times, uint64_t samples_of_all = 0,
            uint32_t epoch = 0) {
    std::vector<float> logits, labels;
    for (size_t i = 0; i < times.size(); ++i) {
      labels.push_back(i % 2 == 0 ? 1 : 0);
      logits.push_back(i % 2 == 0 ? .5f : -.5f);
    }
    ScoreWindows::Part part{logits, labels, {}, {}, times, epoch};
    windows->AddStep(++steps_, samples_of_all == 0 ? times.size() : samples_of_all, part);
  }

  std::vector<ScoreWindow> ended_;
  uint64_t steps_ = 0;
};

TEST_F(ScoreWindowsTest, HoldTheMetricsOfTheScoresAndNearlyTheExactAuc) {
  ScoreWindows windows(Config(30000, 0), 0, Sink());
  Auc auc;
  LogLoss losses;
  for (int step = 0; step < 300; ++step) {
    std::vector<float> logits, labels;
    for (int i = 0; i < 100; ++i) {
      labels.push_back(RandomBits(1, step, i) % 4 == 0 ? 1.0f : 0.0f);
      logits.push_back(static_cast<float>(NormalDouble(2, 100 * step + i)) + labels.back());
      auc.Add(logits.back(), labels.back(), 1);
      losses.Add(logits.back(), labels.back(), 1);
    }
    windows.AddStep(step + 1, 100, {logits, labels, {}, {}, {}, 0});
  }
  ASSERT_EQ(ended_.size(), 1u);
  EXPECT_EQ(ended_[0].samples, 30000u);
  EXPECT_NEAR(ended_[0].auc, auc.Compute().value, 1e-3);
  EXPECT_NEAR(ended_[0].logloss, losses.LogLossValue().value, 1e-9);
  EXPECT_NEAR(ended_[0].calibration, losses.Calibration().value, 1e-9);
}

TEST_F(ScoreWindowsTest, OfSamplesEndWithTheStepThatReachesAMultiple) {
  ScoreWindows windows(Config(100, 0), /*samples=*/30, Sink());
  const std::vector<int64_t> part(20, 0);
  for (int i = 0; i < 5; ++i) Step(&windows, part, /*samples_of_all=*/40);
  ASSERT_EQ(ended_.size(), 2u);
  EXPECT_FALSE(ended_[0].by_data_time);
  EXPECT_EQ(ended_[0].begin, 30) << "what came before the generation is not in it";
  EXPECT_EQ(ended_[0].end, 110);
  EXPECT_EQ(ended_[0].samples, 40u) << "of this rank";
  EXPECT_EQ(ended_[0].steps, 2u);
  EXPECT_EQ(ended_[1].begin, 110);
  EXPECT_EQ(ended_[1].end, 230);
  EXPECT_EQ(ended_[1].samples, 60u);
}

TEST_F(ScoreWindowsTest, OfDataTimeEndWhenAPartLiesAfterTheirEnd) {
  ScoreWindows windows(Config(0, 3600), 0, Sink());
  Step(&windows, {10 * kHour, 10 * kHour + 1, 10 * kHour + 2});
  Step(&windows, {11 * kHour - 3, 11 * kHour - 2, 11 * kHour - 1, 11 * kHour - 1});
  EXPECT_TRUE(ended_.empty());
  Step(&windows, {13 * kHour, 13 * kHour});
  ASSERT_EQ(ended_.size(), 1u);
  EXPECT_TRUE(ended_[0].by_data_time);
  EXPECT_EQ(ended_[0].begin, 10 * kHour);
  EXPECT_EQ(ended_[0].end, 11 * kHour);
  EXPECT_EQ(ended_[0].steps, 2u);
  EXPECT_EQ(ended_[0].samples, 7u);
  EXPECT_EQ(ended_[0].auc, 1);
}

TEST_F(ScoreWindowsTest, OfDataTimeAreNotEndedByAFewTimesFarOff) {
  ScoreWindows windows(Config(0, 3600), 0, Sink());
  for (int i = 0; i < 5; ++i) {
    Step(&windows, {10 * kHour, 10 * kHour, 10 * kHour, 90000 * kHour, -5 * kHour});
  }
  EXPECT_TRUE(ended_.empty());
}

TEST_F(ScoreWindowsTest, OfDataTimeTakeLatePartsHoweverLate) {
  ScoreWindows windows(Config(0, 3600), 0, Sink());
  // Two topic partitions have times that are four hours apart. They are read alternately, in blocks
  // of 64 parts.
  for (int part = 0; part < 10 * 64; ++part) {
    Step(&windows, {(part / 64 % 2 == 0 ? 10 : 14) * kHour + part});
  }
  ASSERT_EQ(ended_.size(), 1u) << "what was read before the newer partition came";
  EXPECT_EQ(ended_[0].begin, 10 * kHour);
  EXPECT_EQ(ended_[0].samples, 64u);
  Step(&windows, {15 * kHour});
  ASSERT_EQ(ended_.size(), 2u);
  EXPECT_EQ(ended_[1].begin, 14 * kHour);
  EXPECT_EQ(ended_[1].samples, 9u * 64);
}

TEST_F(ScoreWindowsTest, OfDataTimeGoBackInANewEpoch) {
  ScoreWindows windows(Config(0, 3600), 0, Sink());
  Step(&windows, {11 * kHour});
  Step(&windows, {10 * kHour}, 0, /*epoch=*/1);
  ASSERT_EQ(ended_.size(), 1u);
  EXPECT_EQ(ended_[0].begin, 11 * kHour);
  Step(&windows, {9 * kHour}, 0, /*epoch=*/1);
  EXPECT_EQ(ended_.size(), 1u) << "late in its epoch";
  Step(&windows, {11 * kHour}, 0, /*epoch=*/1);
  ASSERT_EQ(ended_.size(), 2u);
  EXPECT_EQ(ended_[1].begin, 10 * kHour);
}

TEST_F(ScoreWindowsTest, OfDataTimeFollowTimesThatGoBackForGood) {
  ScoreWindows windows(Config(0, 3600), 0, Sink());
  Step(&windows, {90000 * kHour});
  for (int i = 0; i < ScoreWindows::kOlderInARow; ++i) Step(&windows, {10 * kHour});
  EXPECT_TRUE(ended_.empty());
  Step(&windows, {10 * kHour});
  Step(&windows, {11 * kHour});
  ASSERT_EQ(ended_.size(), 2u);
  EXPECT_EQ(ended_[0].begin, 90000 * kHour);
  EXPECT_EQ(ended_[0].samples, 1u + ScoreWindows::kOlderInARow);
  EXPECT_EQ(ended_[1].begin, 10 * kHour);
  EXPECT_EQ(ended_[1].samples, 1u);
}

TEST_F(ScoreWindowsTest, OfDataTimeBeginAtMultiplesBefore1970Too) {
  ScoreWindows windows(Config(0, 3600), 0, Sink());
  Step(&windows, {-1});
  Step(&windows, {0});
  ASSERT_EQ(ended_.size(), 1u);
  EXPECT_EQ(ended_[0].begin, -kHour);
  EXPECT_EQ(ended_[0].end, 0);
}

TEST_F(ScoreWindowsTest, LeaveOutWhatIsMaskedOrNotFinite) {
  ScoreWindows windows(Config(5, 0), 0, Sink());
  const float infinite = std::numeric_limits<float>::infinity();
  const std::vector<float> logits = {0, 0, std::nanf(""), infinite, 7}, labels = {1, 0, 1, 0, 1};
  const std::vector<float> weights = {2, 1, 1, 1, 1}, mask = {1, 1, 1, 1, 0};
  windows.AddStep(1, 5, {logits, labels, weights, mask, {}, 0});
  ASSERT_EQ(ended_.size(), 1u);
  EXPECT_EQ(ended_[0].samples, 2u);
  EXPECT_EQ(ended_[0].auc, .5);
  EXPECT_NEAR(ended_[0].logloss, std::log(2), 1e-9);
  EXPECT_NEAR(ended_[0].calibration, 1.5 / 2, 1e-9) << "weighted";
}

TEST_F(ScoreWindowsTest, AStepInWhichThisRankHadNoPartMovesThemAllTheSame) {
  ScoreWindows windows(Config(10, 3600), 0, Sink());
  windows.AddStep(1, 10, {});
  ASSERT_EQ(ended_.size(), 1u);
  EXPECT_EQ(ended_[0].samples, 0u);
  EXPECT_TRUE(std::isnan(ended_[0].logloss));
}

TEST_F(ScoreWindowsTest, AreNotMadeWithoutALength) {
  ScoreWindows windows(Config(0, 0), 0, Sink());
  for (int i = 0; i < 100; ++i) Step(&windows, {i * kHour});
  EXPECT_TRUE(ended_.empty());
}

TEST_F(ScoreWindowsTest, TheTailIsOfAllSamplesWhateverTheWindows) {
  ScoreWindows windows(Config(0, 0), 0, Sink());
  for (int step = 0; step < 1000; ++step) {
    // All logits are 0, so each prediction is one half. The last steps have fewer positives.
    const std::vector<float> logits(4, 0.0f);
    const std::vector<float> labels = {1, step < 880 ? 1.0f : 0.0f, 0, 0};
    windows.AddStep(step + 1, 8, {logits, labels, {}, {}, {}, 0});
  }
  EXPECT_DOUBLE_EQ(windows.Tail().calibration, 2);
  EXPECT_GE(windows.Tail().samples, 400u) << "a tenth of those that this rank has scored";
  EXPECT_LE(windows.Tail().samples, 470u);
  EXPECT_TRUE(ended_.empty());
}

}  // namespace
}  // namespace satrap
