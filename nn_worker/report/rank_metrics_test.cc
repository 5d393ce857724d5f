#include "nn_worker/report/rank_metrics.h"

#include <string>

#include "absl/strings/match.h"
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

TEST(RankMetricsTest, CountsAndHandsOn) {
  MetricsRegistry registry("nn_worker", 1);
  CountingObserver next;
  ManualExecutor clock;
  RankMetrics metrics(&registry, &clock, &next);
  StepEvent step;
  step.samples = 100;
  step.weight = 50;
  step.loss = 25;
  step.had_part = true;
  step.staleness = 2;
  step.loss_scale = 4096;
  step.gradient_values = 1000;
  step.losses = {7, 3};
  step.large = true;
  metrics.OnStep(step);
  step.finite = false;
  step.large = false;
  metrics.OnStep(step);
  metrics.OnGradientNorm(4, .5f);
  metrics.OnGradientNorm(2, 1);
  EvaluationEvent evaluation;
  evaluation.values.set_auc(.75);
  evaluation.learning_rate_factor = .5;
  metrics.OnEvaluation(evaluation);
  metrics.OnPhase("saving");

  EXPECT_EQ(next.events, 6);
  const std::string text = registry.Text();
  const std::string labels = "{index=\"1\",role=\"nn_worker\"} ";
  EXPECT_TRUE(absl::StrContains(text, "satrap_train_steps_total" + labels + "2")) << text;
  EXPECT_TRUE(absl::StrContains(text, "satrap_train_samples_total" + labels + "200")) << text;
  EXPECT_TRUE(absl::StrContains(text, "satrap_train_skipped_steps_total" + labels + "1")) << text;
  EXPECT_TRUE(absl::StrContains(text, "satrap_train_large_gradient_steps_total" + labels + "1"))
      << text;
  EXPECT_TRUE(absl::StrContains(text, "satrap_train_clipped_steps_total" + labels + "1")) << text;
  EXPECT_TRUE(absl::StrContains(text, "satrap_train_gradient_norm" + labels + "2")) << text;
  EXPECT_TRUE(absl::StrContains(text, "satrap_loss_scale" + labels + "4096")) << text;
  EXPECT_TRUE(absl::StrContains(text, "satrap_gradient_values_total" + labels + "2000")) << text;
  EXPECT_TRUE(absl::StrContains(text, "satrap_saturated_values_total" + labels + "14")) << text;
  EXPECT_TRUE(absl::StrContains(text, "satrap_underflowed_values_total" + labels + "6")) << text;
  EXPECT_TRUE(absl::StrContains(text, "satrap_train_loss" + labels + "0.5")) << text;
  EXPECT_TRUE(absl::StrContains(text, "satrap_valid_auc" + labels + "0.75")) << text;
  EXPECT_TRUE(absl::StrContains(text, "satrap_learning_rate_factor" + labels + "0.5")) << text;
}

TEST(RankMetricsTest, CountsCutsByHowTheyEnd) {
  MetricsRegistry registry("nn_worker", 0);
  CountingObserver next;
  ManualExecutor clock;
  RankMetrics metrics(&registry, &clock, &next);
  CutOutcome outcome;
  outcome.committed = true;
  outcome.bytes = 1000;
  outcome.copied_bytes = 10;
  outcome.seconds = 2;
  outcome.ledger_pieces = 6;
  metrics.OnCutBegun();
  metrics.OnCutPause(.25);
  metrics.OnCutEnded(outcome);
  clock.AdvanceBy(3'000'000);
  outcome.committed = false;
  outcome.copy_limit = true;
  metrics.OnCutEnded(outcome);
  outcome.copy_limit = false;
  metrics.OnCutEnded(outcome);
  metrics.OnCutEnded(outcome);
  metrics.UpdateAges();

  EXPECT_EQ(next.events, 6);
  const std::string text = registry.Text();
  const std::string labels = "{index=\"0\",role=\"nn_worker\"} ";
  EXPECT_TRUE(absl::StrContains(text, "satrap_cuts_begun_total" + labels + "1")) << text;
  EXPECT_TRUE(absl::StrContains(text, "satrap_cuts_committed_total" + labels + "1")) << text;
  EXPECT_TRUE(absl::StrContains(text, "cause=\"copy_limit\"} 1")) << text;
  EXPECT_TRUE(absl::StrContains(text, "cause=\"write\"} 2")) << text;
  EXPECT_TRUE(absl::StrContains(text, "satrap_cut_bytes_total" + labels + "1000")) << text;
  EXPECT_TRUE(absl::StrContains(text, "satrap_cut_copied_bytes_total" + labels + "40")) << text;
  EXPECT_TRUE(absl::StrContains(text, "satrap_cut_pause_seconds_sum" + labels + "0.25")) << text;
  EXPECT_TRUE(absl::StrContains(text, "satrap_cut_writing_seconds_sum" + labels + "8")) << text;
  EXPECT_TRUE(absl::StrContains(text, "satrap_ledger_pieces" + labels + "6")) << text;
  EXPECT_TRUE(absl::StrContains(text, "satrap_cut_age_seconds" + labels + "3")) << text;
}

}  // namespace
}  // namespace satrap
