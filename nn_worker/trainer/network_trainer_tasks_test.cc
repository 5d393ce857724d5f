// NetworkTrainer with several tasks.

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "common/base/check.h"
#include "common/config/text_format.h"
#include "gtest/gtest.h"
#include "nn_worker/trainer/network_trainer.h"
#include "nn_worker/trainer/testing/trainer_ranks.h"

namespace satrap {
namespace {

// The tasks: a click, a rating that only clicked samples have, and scores that are compared within
// groups.
JobConfig TasksJob(bool pairs) {
  JobConfig job = TrainerJob();
  JobConfig more;
  CHECK_OK(ParseText(R"(
      data { csv { columns { name: "click" kind: LABEL } columns { name: "g" kind: GROUP }
                   columns { name: "rating" kind: LABEL numeric_label: true } } }
      model {
        layers { name: "rated" inputs: "all" linear { units: 1 } }
        layers { name: "order" inputs: "all" linear { units: 1 } }
        tasks { name: "click" label: "click" }
        tasks { name: "rating" output: "rated" label: "rating" mask: "click" loss: MSE weight: 0.5 }
        tasks { name: "order" output: "order" label: "click" }
      })",
                     "job", &more));
  if (pairs) more.mutable_model()->mutable_tasks(2)->set_loss(TaskConfig::BPR);
  job.MergeFrom(more);
  for (LayerConfig& layer : *job.mutable_model()->mutable_layers()) {
    if (layer.has_mlp()) layer.mutable_mlp()->clear_batch_norm();
  }
  return job;
}

std::vector<FakeSample> TasksBatch(uint64_t step) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<FakeSample> batch = TrainerBatch(step);
  for (size_t i = 0; i < batch.size(); ++i) {
    FakeSample& sample = batch[i];
    sample.labels = {i % 9 == 0 ? nan : sample.label,
                     static_cast<float>(sample.ids[0][0]) / 10 - sample.numeric[0]};
    sample.group = sample.ids[1][0] % 4;
  }
  return batch;
}

TEST(NetworkTrainerTasksTest, UnequalPartsAreOneMachine) {
  TrainerRanks one(1, TasksJob(false)), four(4, TasksJob(false));
  for (uint64_t step = 0; step < 40; ++step) {
    const StepResult whole = one.Step(step, TasksBatch(step), {kTrainerBatch});
    const StepResult parts = four.Step(step, TasksBatch(step), {7, 7, 40, kTrainerBatch});
    EXPECT_NEAR(parts.loss, whole.loss, 1e-4 * whole.loss);
    EXPECT_EQ(parts.weight, whole.weight);
  }
  const std::vector<float> expected = one.Weights(0);
  for (size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(four.Weights(0)[i], expected[i], 2e-5);
  const std::vector<float> rows = one.TableValues();
  for (size_t i = 0; i < rows.size(); ++i) ASSERT_NEAR(four.TableValues()[i], rows[i], 2e-5);
}

TEST(NetworkTrainerTasksTest, EveryTaskLearnsAndIsJudged) {
  for (const bool pairs : {false, true}) {
    TrainerRanks ranks(2, TasksJob(pairs));
    const MetricValues before = ranks.Score(TasksBatch(0), {30, kTrainerBatch});
    for (uint64_t step = 0; step < 300; ++step) {
      ranks.Step(step, TasksBatch(step % 5), {30, kTrainerBatch});
    }
    const MetricValues after = ranks.Score(TasksBatch(0), {30, kTrainerBatch});
    ASSERT_EQ(after.tasks_size(), 3);
    EXPECT_EQ(after.auc(), after.tasks(0).values().auc()) << "the first task is judged";
    EXPECT_GT(after.auc(), before.auc() + .1);
    EXPECT_LT(after.tasks(1).values().rmse(), before.tasks(1).values().rmse() / 2);
    EXPECT_FALSE(after.tasks(1).values().has_auc());
    const MetricValues& order = after.tasks(2).values();
    EXPECT_GT(order.gauc_by_samples(), before.tasks(2).values().gauc_by_samples() + .05);
    EXPECT_EQ(order.has_logloss(), !pairs);
    // Only clicked samples have a rating.
    EXPECT_LT(after.tasks(1).values().samples(), order.samples());
    EXPECT_EQ(order.samples(), after.samples());
  }
}

TEST(NetworkTrainerTasksTest, TheTaskThatIsJudgedIsTheOneThatEvaluationNames) {
  JobConfig job = TasksJob(false);
  job.mutable_evaluation()->set_task("rating");
  job.mutable_evaluation()->set_metric(RMSE);
  TrainerRanks ranks(1, job);
  const MetricValues values = ranks.Score(TasksBatch(0), {kTrainerBatch});
  EXPECT_TRUE(values.has_rmse());
  EXPECT_FALSE(values.has_auc());
  // Scores that are not probabilities have no recent AUC.
  ranks.Step(0, TasksBatch(0), {kTrainerBatch});
  EXPECT_TRUE(std::isnan(ranks.trainer(0)->RecentAuc()));
}

}  // namespace
}  // namespace satrap
