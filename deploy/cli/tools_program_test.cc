#include "deploy/cli/tools_program.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using ::testing::HasSubstr;

// For this test's program there is no satrap_tools where one would be.
TEST(ToolsProgramTest, OneThatIsNotBuiltIsNamed) {
  const absl::Status status = BecomeToolsProgram();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr("/deploy/satrap_tools, which is not there; build "
                                          "//deploy:satrap_tools"));
}

}  // namespace
}  // namespace satrap
