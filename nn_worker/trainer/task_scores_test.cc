#include "nn_worker/trainer/task_scores.h"

#include <cmath>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "nn_worker/collective/local_collective.h"

namespace satrap {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

PartLayout LayoutOf(const std::vector<TaskConfig::Loss>& losses) {
  PartLayout layout;
  for (const TaskConfig::Loss loss : losses) {
    ModelTask task;
    task.name = TaskConfig::Loss_Name(loss);
    task.loss = loss;
    layout.tasks.push_back(task);
  }
  return layout;
}

TEST(TaskScoresTest, ATaskPredictsWhatItsLossMeans) {
  const PartLayout layout = LayoutOf(
      {TaskConfig::BCE, TaskConfig::MSE, TaskConfig::BPR, TaskConfig::SOFTMAX_CROSS_ENTROPY});
  TaskScores scores(layout);
  const std::vector<float> labels = {0, 1};
  for (size_t t = 0; t < 3; ++t) scores.Add(t, {0, -2}, {labels, {}, {}, {}});
  scores.Add(3, {1, 5, 5, kNan, 0, 9}, {labels, {}, {}, {}});
  const std::vector<double> predictions = scores.Predictions();
  ASSERT_EQ(predictions.size(), 8u);
  EXPECT_EQ(predictions[0], .5);
  EXPECT_NEAR(predictions[4], 1 / (1 + std::exp(2.0)), 1e-15);
  EXPECT_EQ(predictions[1], 0);
  EXPECT_EQ(predictions[5], -2);
  EXPECT_EQ(predictions[6], -2);
  EXPECT_EQ(predictions[3], 1) << "the first of the most probable";
  EXPECT_TRUE(std::isnan(predictions[7]));
}

TEST(TaskScoresTest, AnEmptyPartHasNoPredictions) {
  const PartLayout layout = LayoutOf({TaskConfig::BCE});
  TaskScores scores(layout);
  scores.Add(0, {}, {});
  EXPECT_TRUE(scores.Predictions().empty());
}

TEST(TaskScoresTest, TheMetricsAreThoseOfTheMainTaskAndOfEach) {
  PartLayout layout = LayoutOf({TaskConfig::BCE, TaskConfig::MSE});
  layout.main_task = 1;
  const auto collective = std::move(NewLocalCollectives(1)[0]);
  TaskScores scores(layout);
  const std::vector<float> labels = {0, 1}, mask = {1, 0};
  scores.Add(0, {1, 2}, {labels, {}, {}, {}});
  scores.Add(1, {1, 7}, {labels, {}, mask, {}});
  const auto merged = scores.Merge(collective.get());
  ASSERT_TRUE(merged.ok()) << merged.status();
  EXPECT_EQ(merged->mse(), 1);
  EXPECT_EQ(merged->samples(), 1u);
  EXPECT_FALSE(merged->has_auc());
  ASSERT_EQ(merged->tasks_size(), 2);
  EXPECT_EQ(merged->tasks(0).name(), "BCE");
  EXPECT_EQ(merged->tasks(0).values().auc(), 1);
  EXPECT_EQ(merged->tasks(0).values().samples(), 2u);
  EXPECT_EQ(merged->tasks(1).values().mse(), 1);
}

TEST(TaskScoresTest, AJobWithoutTasksListsNone) {
  PartLayout layout = LayoutOf({TaskConfig::BCE});
  layout.tasks[0].name = "";
  const auto collective = std::move(NewLocalCollectives(1)[0]);
  TaskScores scores(layout);
  const auto merged = scores.Merge(collective.get());
  ASSERT_TRUE(merged.ok()) << merged.status();
  EXPECT_EQ(merged->tasks_size(), 0);
}

}  // namespace
}  // namespace satrap
