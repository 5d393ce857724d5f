// Tests training in 16 bits on the CPU.

#include <string>

#include "gmock/gmock.h"
#include "tests/integration/run_fixture.h"

namespace satrap {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

class PrecisionTest : public RunFixture {};

// The test may run on any CPU, so the log may name any of the ways to multiply.
TEST_F(PrecisionTest, ARunInBf16LearnsAndSaysHowItMultiplies) {
  const CommandEnd end = Satrap(
      {"train", WriteJob(20000), "--run_dir", Path("run"), "--set", "nn_worker.precision=BF16"});
  ASSERT_EQ(end.exit_code, 0) << end.err;
  EXPECT_GT(JsonNumber(ReadFile(Path("run/report.json")), "test.auc"), 0.6);
  const std::string log = ReadFile(Path("run/logs/nn_worker_0.log"));
  EXPECT_THAT(log, AnyOf(HasSubstr("multiplies BF16 values with A"),
                         HasSubstr("rounds values to 16 bits and multiplies them in f32")));
}

}  // namespace
}  // namespace satrap
