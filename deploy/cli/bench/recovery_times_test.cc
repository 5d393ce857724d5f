#include "deploy/cli/bench/recovery_times.h"

#include <numeric>

#include "gtest/gtest.h"

namespace satrap {
namespace {

using Logs = std::vector<std::pair<Role, std::string>>;

std::string Line(const std::string& seconds, const std::string& text) {
  return "2026-11-22T04:45:" + seconds + "Z info    role/0 " + text + " x=1\n";
}

// A recovery in which the PS has loaded before the last role registers.
Logs SampleLogs() {
  const std::string before = "---- generation 1 ----\n" + Line("01.000", "registered") +
                             Line("01.500", "has made the first step of the generation") +
                             "---- generation 2 ----\n";
  return {
      {COORDINATOR, before + Line("10.200", "waiting for members")},
      {EMBEDDING_PS, before + Line("10.250", "registered") +
                         Line("10.400", "has loaded the rows of the cut") +
                         Line("10.700", "every role is ready")},
      {NN_WORKER, before + Line("10.450", "registered") + Line("10.600", "every role is ready") +
                      Line("10.900", "begins to train") +
                      Line("11.150", "has made the first step of the generation")},
  };
}

int64_t UnixMs(int64_t ms_after_ten) { return 1795322710000 + ms_after_ten; }

TEST(RecoveryTimes, AreTheTimesBetweenTheLastMomentsOfEachPhase) {
  const RestartTimes restart = {UnixMs(20), UnixMs(80), UnixMs(110)};
  const auto times = ReadRecoveryTimes(SampleLogs(), 2, UnixMs(5), restart);
  ASSERT_TRUE(times.ok()) << times.status();
  EXPECT_EQ(*times, (RecoveryTimes{15, 60, 30, 90, 250, 0, 150, 300, 250}));
  EXPECT_EQ(std::accumulate(times->begin(), times->end(), int64_t{0}), 1145);
}

TEST(RecoveryTimes, OtherGenerationsDoNotCount) {
  const auto times = ReadRecoveryTimes(SampleLogs(), 3, UnixMs(5), {});
  EXPECT_EQ(times.status().message(),
            "a log of coordinator lacks 'waiting for members' in generation 3");
}

TEST(RecoveryTimes, EveryProcessOfARoleMustHaveComeToEachMoment) {
  Logs logs = SampleLogs();
  logs.push_back({EMBEDDING_PS, "---- generation 2 ----\n" + Line("10.250", "registered")});
  EXPECT_EQ(ReadRecoveryTimes(logs, 2, UnixMs(5), {}).status().message(),
            "a log of embedding_ps lacks 'has loaded the rows' in generation 2");
}

}  // namespace
}  // namespace satrap
