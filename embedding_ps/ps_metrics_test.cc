#include "embedding_ps/ps_metrics.h"

#include "common/rpc/hot_methods.h"
#include "embedding_ps/testing/ps_engine_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(PsMetricsTest, FollowTheEngine) {
  Pss pss(PsTestJob(JobConfig::HYBRID, 1, 1));
  MetricsRegistry registry("embedding_ps", 0);
  ExportPsMetrics(pss.engine(), &registry);
  EXPECT_THAT(registry.Text(),
              HasSubstr("satrap_updates_total{index=\"0\",role=\"embedding_ps\"} 0"));
  const UpdateCall update = UpdateOf(JobConfig::HYBRID, 0, 0, {7, 9}, {1, 2, 3, 4, 5, 6});
  ASSERT_TRUE(pss.CallAndWait(0, rpc::kUpdate, update.Message()).ok());
  pss.Rows({7, 8, 9});
  ExportPsMetrics(pss.engine(), &registry);
  const std::string text = registry.Text();
  for (const char* line : {"satrap_updates_total{index=\"0\",role=\"embedding_ps\"} 1\n",
                           "satrap_update_keys_total{index=\"0\",role=\"embedding_ps\"} 2\n",
                           "satrap_rows_created_total{index=\"0\",role=\"embedding_ps\"} 2\n",
                           "satrap_lookup_keys_total{index=\"0\",role=\"embedding_ps\"} 3\n",
                           "satrap_absent_keys_total{index=\"0\",role=\"embedding_ps\"} 1\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  EXPECT_THAT(text, HasSubstr("satrap_table_rows{"));
}

TEST(PsMetricsTest, TheDataTimeIsTheLatestOfAllUpdates) {
  for (const JobConfig::Mode mode : {JobConfig::HYBRID, JobConfig::SYNC}) {
    Pss pss(PsTestJob(mode, 1, 1));
    MetricsRegistry registry("embedding_ps", 0);
    uint64_t step = 0;
    const auto update = [&](absl::optional<int64_t> time_ms) {
      UpdateCall call = UpdateOf(mode, 0, step++, {7}, {1, 2, 3});
      if (time_ms.has_value()) call.header.set_data_time_ms(*time_ms);
      ASSERT_TRUE(pss.CallAndWait(0, rpc::kUpdate, call.Message()).ok());
      ExportPsMetrics(pss.engine(), &registry);
    };
    update(absl::nullopt);
    EXPECT_THAT(registry.Text(), Not(HasSubstr("satrap_data_time_seconds")));
    update(5500);
    update(2000);
    update(absl::nullopt);
    EXPECT_THAT(registry.Text(),
                HasSubstr("satrap_data_time_seconds{index=\"0\",role=\"embedding_ps\"} 5.5\n"));
  }
}

}  // namespace
}  // namespace satrap
