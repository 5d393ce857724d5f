#include "tests/simulation/sim_history.h"

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap::simulation {
namespace {

RunLogEntry GenerationOf(uint64_t number, const std::string& cut) {
  RunLogEntry entry;
  entry.mutable_generation()->set_generation(number);
  entry.mutable_generation()->set_cut(cut);
  return entry;
}

RunLogEntry CutOf(uint64_t generation, const std::string& cut, uint64_t step) {
  RunLogEntry entry;
  entry.mutable_cut()->set_generation(generation);
  entry.mutable_cut()->set_cut(cut);
  entry.mutable_cut()->set_step(step);
  return entry;
}

RunLogEntry End() {
  RunLogEntry entry;
  entry.mutable_end();
  return entry;
}

class HistoryTest : public testing::Test {
 protected:
  HistoryTest()
      : history_(
            WorldShape(), [this](const std::string&) { return Content(); },
            [this](const std::string& cut) { return there_.count(cut) > 0; },
            [this](const std::string& what) { violations_.push_back(what); }) {
    state_.steps = 7;
    state_.samples = 20;
    state_.tables.rows[5];
    state_.tables.pushes[0] = 7;
    position_.set_step(7);
    position_.set_samples(20);
    history_.OnMark("a", state_);
    SimTraining::State later = state_;
    later.steps = 9;
    history_.OnMark("b", later);
  }

  // The content that the disk returns for every cut.
  CutContent Content() {
    CutContent content;
    content.position = position_;
    content.tables.rows = rows_;
    content.tables.read_row = [this](uint32_t table,
                                     uint64_t) -> absl::optional<std::vector<float>> {
      if (table == 1) return std::vector<float>(kRowValues, row_value_);
      std::vector<float> counters(kCounterValues);
      counters[0] = 7;
      return counters;
    };
    return content;
  }

  // A log whose COMPACTED entry has the number `compacted` and holds all its entries; 0: without
  // one.
  static SimLog LogOf(const std::vector<RunLogEntry>& entries, size_t compacted = 0) {
    SimLog log;
    for (const RunLogEntry& entry : entries) {
      log.entries.push_back(std::make_shared<SimLogEntry>(entry));
    }
    log.number = compacted > 0 ? compacted : entries.size();
    log.compacted_number = compacted;
    return log;
  }

  // The violations that are found in a compacted log which holds these entries.
  std::vector<std::string> ViolationsOfCompacted(const std::vector<RunLogEntry>& kept) {
    violations_.clear();
    history_.OnLog(LogOf(kept, /*compacted=*/10), /*acknowledged=*/false);
    return violations_;
  }

  // The violations that are found in this log.
  std::vector<std::string> ViolationsOf(const std::vector<RunLogEntry>& log,
                                        bool acknowledged = false) {
    violations_.clear();
    history_.OnLog(LogOf(log), acknowledged);
    return violations_;
  }

  SimTraining::State state_;
  RunPosition position_;
  uint64_t rows_ = 1;
  float row_value_ = kInitialRowValue;
  std::vector<std::string> violations_;
  std::set<std::string> there_;  // cuts
  History history_;
};

TEST_F(HistoryTest, AcceptsARunOfTwoGenerations) {
  const std::vector<RunLogEntry> log = {GenerationOf(1, ""), CutOf(1, "a", 7), GenerationOf(2, "a"),
                                        End()};
  EXPECT_TRUE(ViolationsOf(log, true).empty());
  EXPECT_TRUE(ViolationsOf(log, true).empty()) << "read again";
  EXPECT_EQ(history_.newest_cut(), "a");
  EXPECT_TRUE(history_.finished());
  EXPECT_EQ(history_.StateOf("a").steps, 7u);
  EXPECT_EQ(history_.StateOf("").steps, 0u);
}

TEST_F(HistoryTest, SeesAnAcknowledgedEntryThatIsGoneOrAnotherOne) {
  EXPECT_TRUE(ViolationsOf({GenerationOf(1, ""), CutOf(1, "a", 7)}, true).empty());
  EXPECT_FALSE(ViolationsOf({GenerationOf(1, "")}).empty());
  EXPECT_FALSE(ViolationsOf({GenerationOf(1, ""), GenerationOf(2, "")}).empty());
}

TEST_F(HistoryTest, LetsAnEntryGoThatNobodyWasToldOf) {
  EXPECT_TRUE(ViolationsOf({GenerationOf(1, ""), CutOf(1, "a", 7)}, false).empty());
  EXPECT_TRUE(ViolationsOf({GenerationOf(1, ""), GenerationOf(2, "")}, true).empty());
}

TEST_F(HistoryTest, SeesAGenerationThatLeavesOutACut) {
  EXPECT_FALSE(ViolationsOf({GenerationOf(1, ""), CutOf(1, "a", 7), GenerationOf(2, "")}).empty());
  EXPECT_FALSE(ViolationsOf({GenerationOf(1, ""), GenerationOf(3, "")}).empty());
}

TEST_F(HistoryTest, LetsAResumeTakeTheRunBackToAnOlderCutWhereItStays) {
  std::vector<RunLogEntry> log = {GenerationOf(1, ""), CutOf(1, "a", 7), GenerationOf(2, "")};
  log[2].mutable_generation()->set_began(BEGAN_RESUME);
  log.push_back(GenerationOf(3, ""));
  EXPECT_TRUE(ViolationsOf(log).empty());
  log.push_back(GenerationOf(4, "a"));
  EXPECT_FALSE(ViolationsOf(log).empty());
}

TEST_F(HistoryTest, SeesACutOfAnEarlierGenerationAndOneThatWasNeverMarked) {
  EXPECT_FALSE(ViolationsOf({GenerationOf(1, ""), GenerationOf(2, ""), CutOf(1, "a", 7)}).empty());
  EXPECT_FALSE(ViolationsOf({GenerationOf(1, ""), CutOf(1, "c", 7)}).empty());
}

TEST_F(HistoryTest, SeesACutWhoseRowsAreNotThoseOfItsMark) {
  row_value_ = 2;
  EXPECT_FALSE(ViolationsOf({GenerationOf(1, ""), CutOf(1, "a", 7)}).empty());
}

TEST_F(HistoryTest, SeesACutWithARowTooMany) {
  rows_ = 2;
  EXPECT_FALSE(ViolationsOf({GenerationOf(1, ""), CutOf(1, "a", 7)}).empty());
}

TEST_F(HistoryTest, SeesACutOfAnotherStep) {
  EXPECT_FALSE(ViolationsOf({GenerationOf(1, ""), CutOf(1, "b", 9)}).empty())
      << "its position is that of step 7";
}

TEST_F(HistoryTest, SeesEntriesAfterTheEnd) {
  EXPECT_FALSE(ViolationsOf({GenerationOf(1, ""), End(), GenerationOf(2, "")}).empty());
}

TEST_F(HistoryTest, SeesACutThatWasCalledAbandonedInTheLog) {
  const std::vector<RunLogEntry> log = {GenerationOf(1, ""), CutOf(1, "a", 7)};
  ASSERT_THAT(ViolationsOf(log), testing::IsEmpty());
  history_.OnAbandoned("a");
  EXPECT_EQ(violations_.size(), 1u) << "it is called abandoned after it was committed";
  EXPECT_EQ(ViolationsOf(log).size(), 1u);
  EXPECT_EQ(history_.abandoned_cuts(), 1u);
}

TEST_F(HistoryTest, SeesACutThatWasCommittedAfterTheEndOfItsGenerationWasTold) {
  history_.OnMark("c", state_);
  ASSERT_THAT(ViolationsOf({GenerationOf(1, ""), CutOf(1, "a", 7)}), testing::IsEmpty());
  history_.OnEnded(1);
  EXPECT_THAT(ViolationsOf({GenerationOf(1, ""), CutOf(1, "a", 7)}), testing::IsEmpty());
  EXPECT_EQ(ViolationsOf({GenerationOf(1, ""), CutOf(1, "a", 7), CutOf(1, "c", 7)}).size(), 1u);
}

TEST_F(HistoryTest, SeesAGenerationThatRunsBeforeTheLogShowsThatItsJobHasRun) {
  const auto with_job = [](uint64_t generation, const std::string& job) {
    RunLogEntry entry = GenerationOf(generation, "");
    entry.mutable_generation()->set_began(BEGAN_RESUME);
    entry.mutable_generation()->mutable_job()->set_name(job);
    return entry;
  };
  const auto running = [](uint64_t generation) {
    RunLogEntry entry;
    entry.mutable_running()->set_generation(generation);
    return entry;
  };
  std::vector<RunLogEntry> log = {with_job(1, "first")};
  ASSERT_THAT(ViolationsOf(log), testing::IsEmpty());
  history_.OnRuns(1);
  EXPECT_EQ(violations_.size(), 1u);
  EXPECT_EQ(ViolationsOf(log).size(), 1u) << "it stays so";
  log.push_back(running(1));
  log.push_back(with_job(2, "first"));
  ASSERT_THAT(ViolationsOf(log), testing::IsEmpty());
  history_.OnRuns(2);
  EXPECT_THAT(violations_, testing::IsEmpty()) << "it is the same job";
  log.push_back(with_job(3, "other"));
  ASSERT_THAT(ViolationsOf(log), testing::IsEmpty());
  history_.OnRuns(3);
  EXPECT_EQ(violations_.size(), 1u);
  log.push_back(running(3));
  EXPECT_THAT(ViolationsOf(log), testing::IsEmpty());
  history_.OnRuns(1);
  EXPECT_THAT(violations_, testing::IsEmpty()) << "its coordinator was held up";
}

TEST_F(HistoryTest, SeesACompactionThatLeavesOutWhatIsStillAskedFor) {
  history_.OnMark("c", state_);
  RunLogEntry job = GenerationOf(2, "a");
  job.mutable_generation()->mutable_job()->set_name("second");
  RunLogEntry running;
  running.mutable_running()->set_generation(2);
  ASSERT_THAT(ViolationsOf({GenerationOf(1, ""), CutOf(1, "a", 7), job, running, CutOf(2, "c", 7),
                            GenerationOf(3, "c")},
                           true),
              testing::IsEmpty());
  RunLogEntry without_job = job;
  without_job.mutable_generation()->clear_job();
  const std::vector<RunLogEntry> kept = {GenerationOf(1, ""), job, CutOf(2, "c", 7),
                                         GenerationOf(3, "c")};
  there_.insert("a");
  EXPECT_THAT(ViolationsOfCompacted(kept), testing::Not(testing::IsEmpty()));
  there_.clear();
  EXPECT_THAT(ViolationsOfCompacted(
                  {GenerationOf(1, ""), without_job, CutOf(2, "c", 7), GenerationOf(3, "c")}),
              testing::ElementsAre("the compacted log does not have the job of generation 2"));
  EXPECT_THAT(ViolationsOfCompacted(kept), testing::IsEmpty()) << "the folder of a is gone";
  EXPECT_THAT(ViolationsOfCompacted({GenerationOf(1, ""), job, GenerationOf(3, "c")}),
              testing::Not(testing::IsEmpty()))
      << "the newest cut";
  EXPECT_THAT(ViolationsOfCompacted({job, CutOf(2, "c", 7), GenerationOf(3, "c")}),
              testing::Not(testing::IsEmpty()))
      << "generation 1";
}

TEST_F(HistoryTest, SeesAnotherJobWithoutAWishAndOneThatWasDroppedWithoutAReason) {
  RunLogEntry other = GenerationOf(2, "");
  other.mutable_generation()->set_began(BEGAN_RESTART);
  other.mutable_generation()->mutable_job()->set_name("other");
  RunLogEntry first = GenerationOf(1, "");
  first.mutable_generation()->mutable_job()->set_name("first");
  EXPECT_EQ(ViolationsOf({first, other}).size(), 1u);
  RunLogEntry resumed = other;
  resumed.mutable_generation()->set_began(BEGAN_RESUME);
  RunLogEntry running, dropped;
  running.mutable_running()->set_generation(1);
  dropped.mutable_dropped()->set_generation(2);
  RunLogEntry back = first;
  back.mutable_generation()->set_generation(3);
  back.mutable_generation()->set_began(BEGAN_RESTART);
  EXPECT_EQ(ViolationsOf({first, running, resumed, dropped, back}).size(), 1u);
  EXPECT_FALSE(ViolationsOf({first, running, resumed, back}).empty());
  history_.OnCannotBegin(2);
  EXPECT_THAT(ViolationsOf({first, running, resumed, dropped, back}), testing::IsEmpty());
}

}  // namespace
}  // namespace satrap::simulation
