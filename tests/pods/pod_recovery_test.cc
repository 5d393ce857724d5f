#include "tests/pods/pod_recovery.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace satrap {
namespace {

using Logs = std::vector<std::pair<Role, std::string>>;

std::string Line(const std::string& seconds, const std::string& text) {
  return "2026-11-22T04:45:" + seconds + "Z info    role/0 " + text + " x=1\n";
}

int64_t UnixMs(int64_t ms_after_ten) { return 1795322710000 + ms_after_ten; }

// Each process starts for the third time; earlier starts must not count.
std::string Starts(const std::string& role, const std::string& last_words) {
  return "---- start 1 of " + role + " ----\n" + Line("01.000", "registered") + "---- start 2 of " +
         role + " ----\n" + Line("02.000", "registered") + last_words + role +
         " exited with 75; it is started again\n" + "---- start 3 of " + role + " ----\n";
}

Logs SampleLogs(const std::string& coordinators_last_words) {
  return {
      {COORDINATOR, Starts("coordinator", coordinators_last_words) +
                        Line("10.150", "has claimed a generation") +
                        Line("10.200", "waiting for members")},
      {EMBEDDING_PS, Starts("embedding_ps 0", Line("10.080", "this generation is over")) +
                         Line("10.110", "listens") + Line("10.250", "registered") +
                         Line("10.400", "has loaded the rows of the cut") +
                         Line("10.700", "every role is ready")},
      {NN_WORKER, Starts("nn_worker 0", Line("10.060", "this generation is over")) +
                      Line("10.100", "begins") + Line("10.450", "registered") +
                      Line("10.600", "every role is ready") + Line("10.900", "begins to train") +
                      Line("11.150", "has made the first step of the generation")},
  };
}

TEST(PodRecoveryTest, ThePhasesAreThoseOfTheNewestStarts) {
  const auto times = ReadRecoveryInPods(
      SampleLogs(Line("10.020", "the run has changed its state state=RESTARTING")), UnixMs(5));
  ASSERT_TRUE(times.ok()) << times.status();
  EXPECT_EQ(*times, (RecoveryTimes{15, 60, 70, 50, 250, 0, 150, 300, 250}));
}

TEST(PodRecoveryTest, ACoordinatorThatWasKilledSeesNothing) {
  const auto times = ReadRecoveryInPods(SampleLogs(Line("09.000", "goes on")), UnixMs(5));
  ASSERT_TRUE(times.ok()) << times.status();
  EXPECT_EQ(times->at(kSeen), 0);
  EXPECT_EQ(times->at(kEnded), 75);
}

TEST(PodRecoveryTest, ALogWithoutAStartIsAnError) {
  EXPECT_EQ(ReadRecoveryInPods({{NN_WORKER, Line("10.000", "registered")}}, 0).status().message(),
            "a log of nn_worker shows no start");
}

}  // namespace
}  // namespace satrap
