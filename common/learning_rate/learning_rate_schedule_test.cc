#include "common/learning_rate/learning_rate_schedule.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

LearningRateSchedule Schedule(const std::string& text) {
  LearningRateSchedule schedule;
  CHECK(google::protobuf::TextFormat::ParseFromString(text, &schedule)) << text;
  return schedule;
}

void ExpectFactors(const std::string& text, const std::vector<std::pair<int64_t, double>>& wanted) {
  for (const auto& [step, factor] : wanted) {
    EXPECT_NEAR(LearningRateFactor(Schedule(text), step), factor, 1e-12)
        << text << ", step " << step;
  }
}

TEST(LearningRateSchedule, IsConstantIfNothingIsSaid) { ExpectFactors("", {{0, 1}, {1 << 30, 1}}); }

TEST(LearningRateSchedule, WarmsUpLinearly) {
  ExpectFactors("warmup_steps: 4", {{0, .25}, {1, .5}, {3, 1}, {100, 1}});
}

TEST(LearningRateSchedule, FallsInSteps) {
  ExpectFactors("step { every_steps: 10 factor: .5 }", {{0, 1}, {9, 1}, {10, .5}, {20, .25}});
}

TEST(LearningRateSchedule, FallsExponentially) {
  ExpectFactors("exponential { decay_steps: 10 factor: .25 }", {{0, 1}, {5, .5}, {10, .25}});
}

// The schedule of MLPerf's DLRM: a warm-up, and later the factor ((end - step) / decay_steps)^2.
TEST(LearningRateSchedule, FallsByAPolynomial) {
  const std::string text =
      "warmup_steps: 2 polynomial { start_step: 10 decay_steps: 4 power: 2 end_factor: 0 }";
  ExpectFactors(text, {{0, .5}, {1, 1}, {10, 1}, {11, .5625}, {12, .25}, {14, 0}, {99, 0}});
  ExpectFactors("polynomial { decay_steps: 4 power: 1 end_factor: .5 }",
                {{0, 1}, {2, .75}, {4, .5}, {5, .5}});
}

TEST(LearningRateSchedule, FallsByACosine) {
  ExpectFactors("cosine { start_step: 2 decay_steps: 8 end_factor: .5 }",
                {{0, 1}, {2, 1}, {6, .75}, {10, .5}, {11, .5}});
}

TEST(LearningRateSchedule, CoolsDownOverTheLastShareOfTheRun) {
  const std::string text = "cool_down { total_steps: 100 share: .2 }";
  ExpectFactors(text, {{0, 1}, {80, 1}, {90, .5}, {99, .05}, {100, 0}, {120, 0}});
  ExpectFactors("cool_down { total_steps: 100 share: 0 }", {{99, 1}, {200, 1}});
  ExpectFactors("cool_down { total_steps: 10 share: 1 end_factor: .5 }", {{0, 1}, {5, .75}});
}

TEST(LearningRateSchedule, FactorsAreMultiplied) {
  ExpectFactors(
      "warmup_steps: 10 step { every_steps: 4 factor: .5 } cool_down { total_steps: 8 share: .5 }",
      {{3, .4}, {4, .25}, {6, .175}});
}

}  // namespace
}  // namespace satrap
