#include "nn_worker/trainer/task_batch.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace satrap {
namespace {

using Floats = std::vector<float>;

Floats Of(absl::Span<const float> span) { return {span.begin(), span.end()}; }

ModelTask TaskOf(size_t label, int mask = -1, TaskConfig::Loss loss = TaskConfig::BCE) {
  ModelTask task;
  task.name = "t";
  task.label = label;
  task.mask = mask;
  task.loss = loss;
  return task;
}

// Three samples with two labels each; the second sample's first label is missing.
struct Part {
  const Floats labels = {1, 10, 0, 20, 0, 30};
  const std::vector<uint8_t> mask = {1, 1, 0, 1, 1, 1};
  const Floats weights = {.5, 1, 2};
  const std::vector<uint64_t> groups = {4, 5, 4};
  PartView View() const {
    PartView view;
    view.samples = 3;
    view.labels = labels;
    view.mask = mask;
    view.weights = weights;
    view.groups = groups;
    return view;
  }
};

TEST(TaskBatchTest, ATaskHasItsColumnAndCountsWhereItIsKnown) {
  const Part part;
  const PartView view = part.View();
  const std::vector<ModelTask> tasks = {TaskOf(0), TaskOf(1)};
  TaskBatch batch(tasks, {1, 1}, 2);
  ASSERT_TRUE(batch.Set(view).ok());
  EXPECT_EQ(Of(batch.targets()[0].labels), (Floats{1, 0, 0}));
  EXPECT_EQ(Of(batch.targets()[0].mask), (Floats{1, 0, 1}));
  EXPECT_EQ(Of(batch.targets()[1].labels), (Floats{10, 20, 30}));
  EXPECT_EQ(Of(batch.targets()[1].mask), (Floats{1, 1, 1}));
  for (const LossTargets& targets : batch.targets()) {
    EXPECT_EQ(Of(targets.weights), part.weights);
    EXPECT_EQ(targets.groups[1], 5u);
  }
}

TEST(TaskBatchTest, AMaskColumnLeavesOutWhatIsZeroOrMissingThere) {
  const Part part;
  const PartView view = part.View();
  const std::vector<ModelTask> tasks = {TaskOf(1, /*mask=*/0)};
  TaskBatch batch(tasks, {1}, 2);
  ASSERT_TRUE(batch.Set(view).ok());
  EXPECT_EQ(Of(batch.targets()[0].mask), (Floats{1, 0, 0}));
}

TEST(TaskBatchTest, OneLabelIsThePartsOwn) {
  const Floats labels = {1, 0};
  PartView view;
  view.samples = 2;
  view.labels = labels;
  const std::vector<ModelTask> tasks = {ModelTask()};
  TaskBatch batch(tasks, {1}, 1);
  ASSERT_TRUE(batch.Set(view).ok());
  EXPECT_EQ(batch.targets()[0].labels.data(), labels.data());
  EXPECT_TRUE(batch.targets()[0].mask.empty());
  ASSERT_TRUE(batch.Set(PartView()).ok());
  EXPECT_TRUE(batch.targets()[0].labels.empty());
}

TEST(TaskBatchTest, AClassIsOneThatTheOutputHas) {
  const std::vector<ModelTask> tasks = {TaskOf(0, -1, TaskConfig::SOFTMAX_CROSS_ENTROPY)};
  TaskBatch batch(tasks, {3}, 1);
  PartView view;
  view.samples = 2;
  for (const float label : {0.0f, 2.0f}) {
    const Floats labels = {1, label};
    view.labels = labels;
    EXPECT_TRUE(batch.Set(view).ok()) << label;
  }
  for (const float label : {-1.0f, 3.0f, .5f}) {
    const Floats labels = {1, label};
    const std::vector<uint8_t> mask = {1, 0};
    view.labels = labels;
    view.mask = {};
    EXPECT_EQ(batch.Set(view).code(), absl::StatusCode::kInvalidArgument) << label;
    view.mask = mask;
    EXPECT_TRUE(batch.Set(view).ok()) << "masked";
  }
}

}  // namespace
}  // namespace satrap
