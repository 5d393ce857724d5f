#include "deploy/coordinator/ending/job_trial.h"

#include <string>
#include <vector>

#include "common/config/text_format.h"
#include "common/file/testing/memory_file_system.h"
#include "common/role/ending.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

constexpr char kRun[] = "/runs/a";
constexpr char kOne[] = "name: 'a' embedding_ps { replicas: 1 } data { kafka { brokers: 'b' } }";
constexpr char kTwo[] = "name: 'a' embedding_ps { replicas: 2 } data { kafka { brokers: 'b' } }";
constexpr char kElsewhere[] =
    "name: 'a' embedding_ps { replicas: 1 } data { kafka { brokers: 'c' } }";

std::string Generation(int number, const std::string& job, const std::string& began) {
  return "generation { generation: " + std::to_string(number) + " began: " + began + " job { " +
         job + " } }";
}

// The JobTrial of the newest generation in a log with these entries.
JobTrial Trial(const std::vector<std::string>& entries) {
  MemoryFileSystem disk;
  EXPECT_TRUE(disk.CreateFolders(kRun).ok());
  auto log = RunLog::Open(kRun, &disk, 1);
  EXPECT_TRUE(log.ok()) << log.status();
  for (const std::string& text : entries) {
    RunLogEntry entry;
    EXPECT_TRUE(ParseText(text, "entry", &entry).ok()) << text;
    EXPECT_TRUE(log->Append(entry).ok());
  }
  return TrialOf(*log, log->last_generation()->job());
}

TEST(JobTrial, AFirstJobSaysThatItRunsAndHasNothingToGoBackTo) {
  const JobTrial trial = Trial({Generation(1, kOne, "BEGAN_START")});
  EXPECT_TRUE(trial.writes_running);
  EXPECT_EQ(trial.change, "");
  EXPECT_FALSE(trial.MayBeTheCause(EndingOf(Ending::OTHER_DATA, "")));
}

TEST(JobTrial, AJobThatHasRunIsNotOnTrial) {
  const JobTrial trial = Trial({Generation(1, kOne, "BEGAN_START"), "running { generation: 1 }",
                                Generation(2, kOne, "BEGAN_RESTART")});
  EXPECT_FALSE(trial.writes_running);
  EXPECT_EQ(trial.change, "");
}

TEST(JobTrial, AChangedJobIsOnTrialHoweverOftenItsGenerationsAreLost) {
  std::vector<std::string> entries = {
      Generation(1, kOne, "BEGAN_START"), "running { generation: 1 }",
      Generation(2, kTwo, "BEGAN_RESUME"), Generation(3, kTwo, "BEGAN_RESTART")};
  const JobTrial trial = Trial(entries);
  EXPECT_TRUE(trial.writes_running);
  EXPECT_EQ(trial.change, "embedding_ps.replicas from 1 to 2");
  EXPECT_TRUE(trial.resumed) << "somebody waits for the first of them";
  EXPECT_FALSE(trial.changes_topics);
  entries[2] = Generation(2, kTwo, "BEGAN_SCALED");
  EXPECT_FALSE(Trial(entries).resumed);
  entries.push_back("cut { generation: 3 cut: 'cut_0003_000001' }");
  EXPECT_EQ(Trial(entries).change, "") << "it has run";
}

TEST(JobTrial, ABrokerThatIsAwayBlamesAChangeOfTheTopicsAlone) {
  Ending away = EndingOf(Ending::TOPICS, "no broker answers");
  away.set_kind(Ending::PEER_AWAY);
  const Ending refused = EndingOf(Ending::TOPICS, "there is no such topic");
  const std::vector<std::string> before = {Generation(1, kOne, "BEGAN_START"),
                                           "running { generation: 1 }"};
  std::vector<std::string> entries = before;
  entries.push_back(Generation(2, kTwo, "BEGAN_SCALED"));
  EXPECT_FALSE(Trial(entries).MayBeTheCause(away));
  EXPECT_TRUE(Trial(entries).MayBeTheCause(refused));
  entries = before;
  entries.push_back(Generation(2, kElsewhere, "BEGAN_SCALED"));
  EXPECT_TRUE(Trial(entries).changes_topics);
  EXPECT_TRUE(Trial(entries).MayBeTheCause(away));
}

}  // namespace
}  // namespace satrap
