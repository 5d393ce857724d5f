// The jobs of deploy/jobs as shipped: each is valid, and its model fits its data.

#include <filesystem>
#include <string>
#include <vector>

#include "common/config/job_config.h"
#include "gtest/gtest.h"
#include "nn_worker/graph/model/graph_builder.h"
#include "nn_worker/graph/model/model_description.h"
#include "nn_worker/trainer/memory_plan/part_layout.h"

namespace satrap {
namespace {

std::vector<std::string> JobPaths() {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator("deploy/jobs")) {
    paths.push_back(entry.path().string());
  }
  return paths;
}

// The number of trainable values of the job's network. If the network cannot be built, the test
// fails and this is -1.
int64_t DenseParametersOf(const std::string& name) {
  const auto job = LoadJob("deploy/jobs/" + name + ".textproto", {}, ".");
  EXPECT_TRUE(job.ok()) << name << ": " << job.status();
  if (!job.ok()) return -1;
  const auto graph = BuildGraph(job->model(), MakePartLayout(*job).inputs);
  EXPECT_TRUE(graph.ok()) << name << ": " << graph.status();
  return graph.ok() ? DenseParameters(*graph) : -1;
}

TEST(JobModelsTest, EveryJobHasAModelThatFits) {
  EXPECT_GE(JobPaths().size(), 22u);
  for (const std::string& path : JobPaths()) {
    // The count is 0 for a retrieval model that only multiplies embeddings.
    EXPECT_GE(DenseParametersOf(std::filesystem::path(path).stem().string()), 0) << path;
  }
}

// The expected values are the counts that BARS publishes for Frappe_x1, minus the tables' 5,389
// rows.
TEST(JobModelsTest, FrappesModelsHaveThePublishedSizes) {
  EXPECT_EQ(DenseParametersOf("frappe_lr"), 1);
  EXPECT_EQ(DenseParametersOf("frappe_ffm"), 490400 - 5389 * 91);
  EXPECT_EQ(DenseParametersOf("frappe_dcnv2"), 458391 - 53890);
  EXPECT_EQ(DenseParametersOf("frappe_xdeepfm"), 429809 - 5389 * 11);
  EXPECT_EQ(DenseParametersOf("frappe_autoint_plus"), 622180 - 53890);
}

}  // namespace
}  // namespace satrap
