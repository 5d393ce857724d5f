#include "nn_worker/report/rank_metrics.h"

#include <string>

#include "absl/strings/match.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

class CountingObserver final : public RankObserver {
 public:
  void OnPhase(absl::string_view) override { ++events; }
  void OnStep(const StepEvent&) override { ++events; }
  void OnEvaluation(const EvaluationEvent&) override { ++events; }
  int events = 0;
};

TEST(RankMetricsTest, CountsAndHandsOn) {
  MetricsRegistry registry("nn_worker", 1);
  CountingObserver next;
  RankMetrics metrics(&registry, &next);
  StepEvent step;
  step.samples = 100;
  step.weight = 50;
  step.loss = 25;
  step.had_part = true;
  step.staleness = 2;
  step.saturated_values = 7;
  metrics.OnStep(step);
  step.finite = false;
  metrics.OnStep(step);
  EvaluationEvent evaluation;
  evaluation.values.set_auc(.75);
  metrics.OnEvaluation(evaluation);
  metrics.OnPhase("saving");

  EXPECT_EQ(next.events, 4);
  const std::string text = registry.Text();
  const std::string labels = "{index=\"1\",role=\"nn_worker\"} ";
  EXPECT_TRUE(absl::StrContains(text, "satrap_train_steps_total" + labels + "2")) << text;
  EXPECT_TRUE(absl::StrContains(text, "satrap_train_samples_total" + labels + "200")) << text;
  EXPECT_TRUE(absl::StrContains(text, "satrap_train_skipped_steps_total" + labels + "1")) << text;
  EXPECT_TRUE(absl::StrContains(text, "satrap_saturated_values_total" + labels + "14")) << text;
  EXPECT_TRUE(absl::StrContains(text, "satrap_train_loss" + labels + "0.5")) << text;
  EXPECT_TRUE(absl::StrContains(text, "satrap_valid_auc" + labels + "0.75")) << text;
}

}  // namespace
}  // namespace satrap
