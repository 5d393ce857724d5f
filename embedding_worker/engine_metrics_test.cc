#include "embedding_worker/engine_metrics.h"

#include "embedding_worker/engine_test_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using ::testing::HasSubstr;

TEST_F(EngineTest, MetricsFollowTheEngine) {
  Start(TestJob());
  MetricsRegistry registry("embedding_worker", 0);
  EngineMetrics metrics(engine_.get(), &registry);
  PutTwoSamples(1);
  executor_.AdvanceBy(1'500'000);
  metrics.Refresh();
  EXPECT_THAT(registry.Text(),
              HasSubstr("satrap_accepted_parts{index=\"0\",role=\"embedding_worker\"} 1"));
  EXPECT_THAT(registry.Text(),
              HasSubstr("satrap_ids_total{index=\"0\",role=\"embedding_worker\"} 8"));
  Next(0, 1);
  executor_.AdvanceBy(1'000'000);
  metrics.Refresh();
  EXPECT_THAT(registry.Text(),
              HasSubstr("satrap_outstanding_parts{index=\"0\",role=\"embedding_worker\"} 1"));
  EXPECT_THAT(registry.Text(),
              HasSubstr("satrap_ids_total{index=\"0\",role=\"embedding_worker\"} 8"));
}

}  // namespace
}  // namespace satrap
