#include "embedding_worker/engine_metrics.h"

#include <string>

#include "embedding_worker/testing/engine_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using ::testing::HasSubstr;

TEST_F(EngineTest, MetricsFollowTheEngine) {
  Start(TestJob());
  MetricsRegistry registry("embedding_worker", 0);
  PutTwoSamples(1);
  executor_.AdvanceBy(1'500'000);
  ExportEngineMetrics(*engine_, &registry);
  EXPECT_THAT(registry.Text(),
              HasSubstr("satrap_accepted_parts{index=\"0\",role=\"embedding_worker\"} 1"));
  EXPECT_THAT(registry.Text(),
              HasSubstr("satrap_ids_total{index=\"0\",role=\"embedding_worker\"} 8"));
  Next(0, 1);
  executor_.AdvanceBy(1'000'000);
  ExportEngineMetrics(*engine_, &registry);
  EXPECT_THAT(registry.Text(),
              HasSubstr("satrap_outstanding_parts{index=\"0\",role=\"embedding_worker\"} 1"));
  EXPECT_THAT(registry.Text(),
              HasSubstr("satrap_ids_total{index=\"0\",role=\"embedding_worker\"} 8"));
}

TEST_F(EngineTest, MetricsTellTheShareOfGradientsThatWereLost) {
  JobConfig job = TestJob();
  job.mutable_embedding_ps()->set_wire_dtype(F16);
  Start(job);
  MetricsRegistry registry("embedding_worker", 0);
  PutTwoSamples(1);
  auto push = PushOf(HeaderOf<NextBatchAnswerHeader>(Next(0, 1)));
  const auto bag =
      push.second.MutableView<float>(push.first.features(0).gradients().offset_bytes(), 1);
  bag[0] = 0x1p-58f;  // a gradient of two keys, tiny beside their other values
  Push(0, 1, push);
  ExportEngineMetrics(*engine_, &registry);
  const std::string labels = "{index=\"0\",role=\"embedding_worker\"} ";
  EXPECT_THAT(registry.Text(), HasSubstr("satrap_gradient_values_total" + labels + "16"));
  EXPECT_THAT(registry.Text(), HasSubstr("satrap_underflowed_values_total" + labels + "2"));
  EXPECT_THAT(registry.Text(), HasSubstr("satrap_saturated_values_total" + labels + "0"));
}

}  // namespace
}  // namespace satrap
