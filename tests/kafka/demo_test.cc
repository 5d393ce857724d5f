// Tests `satrap demo --kafka` as a user runs it, with its own broker, its producer, and the run
// that trains from the topic at the same time.

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/run_fixture.h"

namespace satrap {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

class KafkaDemo : public RunFixture {
 protected:
  // Whether Kafka is not installed. The script reports this only if a broker is not required.
  static bool IsNotInstalled(const CommandEnd& end) {
    return end.err.find("there is no Kafka broker to start") != std::string::npos;
  }
};

TEST_F(KafkaDemo, TrainsForSomeTimeAndLeavesNothingRunning) {
  const CommandEnd end = WaitFor(StartSatrap({"demo", "--kafka", "--minutes", "0.3", "--rate",
                                              "2000", "--run_dir", Path("run")}),
                                 /*timeout_s=*/280);
  if (IsNotInstalled(end)) GTEST_SKIP() << "./setup kafka installs a broker";
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.err, HasSubstr("writing 2,000 records a second"));
  EXPECT_THAT(end.err, HasSubstr("no work is lost"));
  EXPECT_THAT(end.out, ContainsRegex("samples/s +[0-9,]+ +[0-9,]+"));
  EXPECT_THAT(end.out, ContainsRegex("embedding_ps 0, rows +[0-9.]+ .?B"));
  EXPECT_THAT(ReadFile(Path("run/metrics.jsonl")), HasSubstr("\"generation\":1"));
  EXPECT_TRUE(WaitUntilGone(Path("run"), 60)) << "broker and producer end with the demo";
}

}  // namespace
}  // namespace satrap
