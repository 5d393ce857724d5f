#include "nn_worker/report/warm_start_report.h"

#include <string>

#include "common/checkpoint/checked_text.h"
#include "common/testing/temp_dir.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using ::testing::HasSubstr;

TEST(WarmStartReport, IsInTheLogByTableAndFeatureAndInTheRunsFolder) {
  const TempDir temp;
  const std::string run = temp.path();
  const auto logger = Logger::Create("nn_worker/0", LogLevel::kInfo, run + "/log");
  ASSERT_TRUE(logger.ok()) << logger.status();
  WarmStartResult result;
  result.set_model("/runs/a");
  result.set_step(7);
  WarmStartResult::Table* table = result.add_tables();
  table->set_name("users");
  table->set_rows(12);
  table->add_features("user");
  table->add_features_without_rows("member");
  result.add_parameters("deep.weight");
  result.add_fresh("top.weight");
  result.add_ignored("old.weight");
  result.add_warnings("feature member finds none");
  ASSERT_TRUE(ReportWarmStart(result, run, *logger).ok());
  const std::string log = TempDir::Read(run + "/log");
  for (const char* part :
       {"begins with a model", "model=/runs/a", "step=7", "table=users", "rows=12", "features=user",
        "features_without_rows=member", "names=deep.weight", "names=top.weight", "names=old.weight",
        "feature member finds none"}) {
    EXPECT_THAT(log, HasSubstr(part));
  }
  WarmStartResult read;
  ASSERT_TRUE(ReadCheckedText(run + kWarmStartFile, DiskFileSystem(), &read).ok());
  EXPECT_EQ(read.SerializeAsString(), result.SerializeAsString());
  EXPECT_FALSE(ReportWarmStart(result, run + "/nowhere", *logger).ok());
}

}  // namespace
}  // namespace satrap
