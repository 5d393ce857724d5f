#include "common/checkpoint/run_log.h"

#include "common/checkpoint/entries/run_end.h"
#include "common/file/testing/memory_file_system.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kRun[] = "/runs/a";

RunLogEntry Generation(uint64_t generation, Began began, const std::string& cut = "") {
  RunLogEntry entry;
  entry.mutable_generation()->set_generation(generation);
  entry.mutable_generation()->set_began(began);
  entry.mutable_generation()->set_cut(cut);
  return entry;
}

// A generation that was started because the previous one was lost; `text` says how.
RunLogEntry Generation(uint64_t generation, const std::string& text, const std::string& cut = "") {
  RunLogEntry entry = Generation(generation, BEGAN_RESTART, cut);
  entry.mutable_generation()->mutable_ended()->set_text(text);
  return entry;
}

RunLogEntry Cut(uint64_t generation, uint64_t cut) {
  RunLogEntry entry;
  entry.mutable_cut()->set_generation(generation);
  entry.mutable_cut()->set_cut(CutName(generation, cut));
  return entry;
}

RunLogEntry End() {
  RunLogEntry entry;
  entry.mutable_end()->mutable_result()->set_steps(9);
  return entry;
}

RunLogEntry Topics(uint32_t stream, const std::string& cluster,
                   const std::vector<TopicPartition>& partitions) {
  RunLogEntry entry;
  StreamTopics* topics = entry.mutable_topics()->add_topics();
  topics->set_stream(stream);
  topics->set_cluster_id(cluster);
  for (const TopicPartition& partition : partitions) *topics->add_partitions() = partition;
  return entry;
}

TopicPartition Partition(const std::string& topic, int partition, uint64_t start) {
  TopicPartition named;
  named.set_topic(topic);
  named.set_partition(partition);
  named.set_start(start);
  return named;
}

class RunLogTest : public testing::Test {
 protected:
  RunLogTest() { EXPECT_TRUE(disk_.CreateFolders(kRun).ok()); }

  RunLog Open(uint64_t writer = 1) {
    absl::StatusOr<RunLog> log = RunLog::Open(kRun, &disk_, writer);
    EXPECT_TRUE(log.ok()) << log.status();
    return *std::move(log);
  }
  absl::Status OpenError() { return RunLog::Open(kRun, &disk_).status(); }
  // Makes the operation that begins with `prefix` fail.
  void Break(const std::string& prefix) {
    disk_.SetHook([prefix](const std::string& operation) {
      return operation.rfind(prefix, 0) == 0 ? absl::ResourceExhaustedError("no space left")
                                             : absl::OkStatus();
    });
  }

  MemoryFileSystem disk_;
};

TEST_F(RunLogTest, ARunWithoutALogHasNoEntries) {
  const RunLog log = Open();
  EXPECT_TRUE(log.entries().empty());
  EXPECT_EQ(log.last_generation(), nullptr);
  EXPECT_EQ(log.last_cut(), nullptr);
  EXPECT_EQ(log.end(), nullptr);
  EXPECT_EQ(log.next_start(), "");
}

TEST_F(RunLogTest, EntriesAreReadBackInTheirOrder) {
  RunLog log = Open();
  for (const RunLogEntry& entry : {Generation(1, BEGAN_START), Cut(1, 1), Cut(1, 2),
                                   Generation(2, "x", "cut_0001_000002"), End()}) {
    ASSERT_TRUE(log.Append(entry).ok());
  }
  const RunLog again = Open();
  ASSERT_EQ(again.entries().size(), 5u);
  EXPECT_EQ(again.last_generation()->generation(), 2u);
  EXPECT_EQ(again.last_cut()->cut(), "cut_0001_000002");
  EXPECT_EQ(again.end()->result().steps(), 9u);
  EXPECT_TRUE(disk_.Exists("/runs/a/log/00000005"));
}

TEST_F(RunLogTest, ADraftIsSyncedBeforeItIsLinkedAndTheFolderBeforeAppendReturns) {
  RunLog log = Open(/*writer=*/0xab);
  disk_.TakeOperations();
  ASSERT_TRUE(log.Append(Generation(1, BEGAN_START)).ok());
  const std::string draft = "/runs/a/log/00000001.00000000000000ab.partial";
  EXPECT_THAT(
      disk_.TakeOperations(),
      ElementsAre("folders /runs/a/log", "sync_folder /runs/a", "sync_folder /runs",
                  "sync_folder /", "sync_folder /runs/a/log", "create " + draft, "append " + draft,
                  "sync " + draft, "hard_link " + draft + " /runs/a/log/00000001",
                  "remove " + draft, "sync_folder /runs/a/log"));
}

TEST_F(RunLogTest, TheNamesOnTheWayToTheLogAreSyncedBeforeTheFirstEntryAsFarAsTheyCanBe) {
  Break("sync_folder /runs");
  EXPECT_FALSE(Open().Append(Generation(1, BEGAN_START)).ok());
  EXPECT_TRUE(Open().entries().empty());
  disk_.SetHook([](const std::string& operation) {
    return operation == "sync_folder /runs" ? absl::PermissionDeniedError("no") : absl::OkStatus();
  });
  disk_.TakeOperations();
  EXPECT_TRUE(Open().Append(Generation(1, BEGAN_START)).ok()) << "it is older than the run";
  RunLog log = Open();
  disk_.TakeOperations();
  EXPECT_TRUE(log.Append(Cut(1, 1)).ok());
  EXPECT_THAT(disk_.TakeOperations(), Not(Contains("sync_folder /runs"))) << "once is enough";
  disk_.SetHook([](const std::string& operation) {
    return operation == "sync_folder /" ? absl::DataLossError("no such thing") : absl::OkStatus();
  });
  ASSERT_TRUE(disk_.Remove("/runs/a/log").ok());
  EXPECT_TRUE(Open().Append(Generation(1, BEGAN_START)).ok());
}

TEST_F(RunLogTest, WhatAnotherProcessHasLinkedIsSyncedBeforeAnythingFollowsIt) {
  RunLog dead = Open(1);
  ASSERT_TRUE(dead.Append(Generation(1, BEGAN_START)).ok());
  RunLog next = Open(2);
  disk_.TakeOperations();
  ASSERT_TRUE(next.Append(Generation(2, "x")).ok());
  EXPECT_EQ(disk_.TakeOperations()[0], "sync_folder /runs/a/log");
  ASSERT_TRUE(next.Append(Cut(2, 1)).ok());
  EXPECT_NE(disk_.TakeOperations()[0], "sync_folder /runs/a/log") << "once is enough";
}

TEST_F(RunLogTest, OfTwoWritersOneGetsTheNumber) {
  RunLog first = Open(1);
  RunLog second = Open(2);
  ASSERT_TRUE(first.Append(Generation(1, BEGAN_START)).ok());
  EXPECT_EQ(second.Append(Generation(1, "other")).code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(Open().last_generation()->began(), BEGAN_START);
  ASSERT_TRUE(first.Append(Cut(1, 1)).ok()) << "the first goes on";
  EXPECT_EQ(second.Append(Cut(1, 7)).code(), absl::StatusCode::kAlreadyExists) << "for good";
}

// The slow writer writes its draft. Then the fast one appends an entry and removes drafts. Only
// then does the slow one try to link.
TEST_F(RunLogTest, AWriterThatIsOvertakenBetweenDraftAndLinkGetsNothing) {
  RunLog slow = Open(1);
  RunLog fast = Open(2);
  bool overtaken = false;
  disk_.SetHook([&](const std::string& operation) {
    if (operation.rfind("hard_link", 0) != 0 || overtaken) return absl::OkStatus();
    overtaken = true;
    EXPECT_TRUE(fast.Append(Generation(1, "fast")).ok());
    EXPECT_TRUE(fast.RemoveDrafts().ok()) << "the slow one's draft among them";
    return absl::OkStatus();
  });
  EXPECT_EQ(slow.Append(Generation(1, "slow")).code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(Open().last_generation()->ended().text(), "fast");
}

TEST_F(RunLogTest, SeesThatAnotherWriterHasAppended) {
  RunLog first = Open(1);
  ASSERT_TRUE(first.Append(Generation(1, BEGAN_START)).ok());
  RunLog second = Open(2);
  EXPECT_FALSE(*first.HasForeignEntry());
  ASSERT_TRUE(second.Append(Generation(2, "x")).ok());
  EXPECT_TRUE(*first.HasForeignEntry());
  EXPECT_FALSE(*second.HasForeignEntry());
}

TEST_F(RunLogTest, DraftsOfTheDeadAreNoEntriesAndAreRemovedUnlessTheirNumberIsFree) {
  RunLog log = Open();
  ASSERT_TRUE(log.Append(Generation(1, BEGAN_START)).ok());
  disk_.Put("/runs/a/log/00000001.000000000000beef.partial", "half");
  disk_.Put("/runs/a/log/00000002.000000000000beef.partial", "half");
  EXPECT_EQ(Open().entries().size(), 1u);
  EXPECT_TRUE(log.RemoveDrafts().ok());
  EXPECT_FALSE(disk_.Exists("/runs/a/log/00000001.000000000000beef.partial"));
  EXPECT_TRUE(disk_.Exists("/runs/a/log/00000002.000000000000beef.partial"))
      << "somebody may be about to link it";
}

TEST_F(RunLogTest, ADamagedEntryIsNamed) {
  RunLog log = Open();
  ASSERT_TRUE(log.Append(Generation(1, BEGAN_START)).ok());
  ASSERT_TRUE(log.Append(Cut(1, 1)).ok());
  std::string text = disk_.ContentOf("/runs/a/log/00000001");
  text[3] ^= 4;
  disk_.Put("/runs/a/log/00000001", text);
  EXPECT_EQ(OpenError().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(OpenError().message(), HasSubstr("/runs/a/log/00000001 is damaged"));
}

TEST_F(RunLogTest, AMissingEntryIsNamed) {
  RunLog log = Open();
  for (int i = 1; i <= 3; ++i) ASSERT_TRUE(log.Append(Cut(1, i)).ok());
  ASSERT_TRUE(disk_.Remove("/runs/a/log/00000002").ok());
  EXPECT_EQ(OpenError().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(OpenError().message(), HasSubstr("lacks the entry /runs/a/log/00000002"));
}

TEST_F(RunLogTest, AnEntryWhoseDraftIsNotSyncedIsNotInTheLog) {
  RunLog log = Open();
  Break("sync /runs/a/log");
  EXPECT_EQ(log.Append(Generation(1, BEGAN_START)).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(Open().entries().empty());
  EXPECT_TRUE(disk_.List("/runs/a/log")->empty()) << "no draft is left";
}

// A coordinator relies on this when it lets training continue after a full disk.
TEST_F(RunLogTest, AfterAnAppendThatIsCertainlyNotInTheLogTheNextOneTakesItsNumber) {
  RunLog log = Open();
  ASSERT_TRUE(log.Append(Generation(1, BEGAN_START)).ok());
  for (const std::string operation : {"create", "append", "sync /runs/a/log", "hard_link"}) {
    Break(operation);
    EXPECT_EQ(log.Append(Cut(1, 1)).code(), absl::StatusCode::kResourceExhausted) << operation;
    EXPECT_FALSE(*log.HasForeignEntry()) << operation;
    disk_.SetHook(nullptr);
    ASSERT_TRUE(log.Append(Cut(1, 2)).ok()) << operation;
    EXPECT_EQ(Open().last_cut()->cut(), "cut_0001_000002") << "and not the first one";
  }
  EXPECT_EQ(Open().entries().size(), 5u);
}

TEST_F(RunLogTest, AnEntryWhoseFolderIsNotSyncedIsAnErrorThoughOthersMaySeeIt) {
  RunLog log = Open();
  ASSERT_TRUE(log.Append(Generation(1, BEGAN_START)).ok());
  Break("sync_folder /runs/a/log");
  EXPECT_EQ(log.Append(Cut(1, 1)).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(log.entries().size(), 1u) << "the writer must not act on it";
  EXPECT_EQ(Open().entries().size(), 2u);
  disk_.SetHook(nullptr);
  EXPECT_TRUE(*log.HasForeignEntry()) << "its own, and yet none to go on after";
  EXPECT_EQ(log.Append(Cut(1, 2)).code(), absl::StatusCode::kAlreadyExists);
}

TEST_F(RunLogTest, AGenerationBeginsFromTheNewestCutOfTheOneBeforeOrFromItsStart) {
  RunLog log = Open();
  ASSERT_TRUE(log.Append(Generation(1, BEGAN_START)).ok());
  EXPECT_EQ(log.next_start(), "");
  ASSERT_TRUE(log.Append(Cut(1, 1)).ok());
  ASSERT_TRUE(log.Append(Cut(1, 2)).ok());
  EXPECT_EQ(log.next_start(), "cut_0001_000002");
  ASSERT_TRUE(log.Append(Generation(2, BEGAN_RESUME, "cut_0001_000001")).ok());
  EXPECT_EQ(log.next_start(), "cut_0001_000001") << "it was taken back";
  ASSERT_TRUE(log.Append(Generation(3, "x", "cut_0001_000001")).ok());
  EXPECT_EQ(log.next_start(), "cut_0001_000001");
  ASSERT_TRUE(log.Append(Cut(3, 1)).ok());
  EXPECT_EQ(log.next_start(), "cut_0003_000001");
}

TEST_F(RunLogTest, CountsRestartsSinceTheLastCutOrWish) {
  RunLog log = Open();
  ASSERT_TRUE(log.Append(Generation(1, BEGAN_START)).ok());
  EXPECT_EQ(log.restarts_without_cut(), 0);
  ASSERT_TRUE(log.Append(Generation(2, "a PS died")).ok());
  ASSERT_TRUE(log.Append(Generation(3, "a PS died")).ok());
  EXPECT_EQ(log.restarts_without_cut(), 2);
  ASSERT_TRUE(log.Append(Cut(3, 1)).ok());
  EXPECT_EQ(log.restarts_without_cut(), 0);
  ASSERT_TRUE(log.Append(Generation(4, "a PS died")).ok());
  EXPECT_EQ(log.restarts_without_cut(), 1);
  ASSERT_TRUE(log.Append(Generation(5, BEGAN_SCALE_ANNOUNCED)).ok());
  ASSERT_TRUE(log.Append(Generation(6, BEGAN_SCALED)).ok());
  EXPECT_EQ(log.restarts_without_cut(), 0);
  ASSERT_TRUE(log.Append(Generation(7, "a PS died")).ok());
  EXPECT_EQ(log.restarts_without_cut(), 1);
}

// Builds that did not have `began` wrote a cause, which was a word or a sentence.
TEST_F(RunLogTest, ALogOfAnOlderBuildCountsAndTellsTheSame) {
  RunLog old = Open();
  uint64_t number = 0;
  for (const char* cause : {"start", "a PS died", "resume", "a PS died", "scale", "scaled", "x"}) {
    RunLogEntry entry;
    entry.mutable_generation()->set_generation(++number);
    entry.mutable_generation()->set_cause(cause);
    ASSERT_TRUE(old.Append(entry).ok());
  }
  const RunLog log = Open();
  const Began began[] = {BEGAN_START,           BEGAN_RESTART, BEGAN_RESUME, BEGAN_RESTART,
                         BEGAN_SCALE_ANNOUNCED, BEGAN_SCALED,  BEGAN_RESTART};
  for (size_t i = 0; i < log.entries().size(); ++i) {
    const GenerationEntry& entry = log.entries()[i].generation();
    EXPECT_EQ(entry.began(), began[i]) << i;
    EXPECT_EQ(CauseText(entry), old.entries()[i].generation().cause());
  }
  EXPECT_EQ(log.restarts_without_cut(), 1);
}

TEST_F(RunLogTest, WordsOfAnEndingDoNotGiveARunItsRestartsAgain) {
  RunLog log = Open();
  ASSERT_TRUE(log.Append(Generation(1, BEGAN_START)).ok());
  for (const char* word : {"start", "resume", "scale", "scaled"}) {
    ASSERT_TRUE(log.Append(Generation(log.last_generation()->generation() + 1, word)).ok());
  }
  EXPECT_EQ(log.restarts_without_cut(), 4);
  EXPECT_EQ(Open().restarts_without_cut(), 4);
}

TEST_F(RunLogTest, AGenerationThatFollowsACutToLeaveIsNoRestartOfOneThatFailed) {
  RunLog log = Open();
  EXPECT_FALSE(log.has_left());
  ASSERT_TRUE(log.Append(Generation(1, BEGAN_START)).ok());
  RunLogEntry cut = Cut(1, 1);
  cut.mutable_cut()->set_leave(true);
  ASSERT_TRUE(log.Append(cut).ok());
  EXPECT_TRUE(log.has_left());
  ASSERT_TRUE(log.Append(Generation(2, "another size could not be announced")).ok());
  EXPECT_FALSE(log.has_left());
  EXPECT_EQ(log.restarts_without_cut(), 0);
  ASSERT_TRUE(log.Append(Generation(3, "a PS died")).ok());
  EXPECT_EQ(log.restarts_without_cut(), 1);
}

TEST_F(RunLogTest, FindsACutByItsName) {
  RunLog log = Open();
  ASSERT_TRUE(log.Append(Generation(1, BEGAN_START, "cut_0001_000001")).ok());
  ASSERT_TRUE(log.Append(Cut(1, 2)).ok());
  ASSERT_TRUE(log.Append(Cut(1, 3)).ok());
  ASSERT_NE(log.FindCut("cut_0001_000002"), nullptr);
  EXPECT_EQ(log.FindCut("cut_0001_000002")->cut(), "cut_0001_000002");
  EXPECT_EQ(log.FindCut("cut_0001_000001"), nullptr) << "begun from, not committed";
}

TEST(CutName, IsReadBack) {
  for (const CutId id : {CutId{1, 1}, CutId{3, 12}, CutId{12345, 1234567}}) {
    EXPECT_EQ(ParseCutName(CutName(id.generation, id.number)), id);
  }
  for (const std::string name :
       {"", "best", "cut_1_2", "cut_0001_000002/", "cut_0001_000002_3", "cut_+001_000002",
        "cut_0001_ 00002", "Cut_0001_000002", "cut_0001_", "cut_0001_99999999999999999999999"}) {
    EXPECT_FALSE(ParseCutName(name).has_value()) << name;
  }
}

TEST(CutId, IsOrderedByNumbersAndNotByText) {
  EXPECT_GT(*ParseCutName("cut_10000_000001"), *ParseCutName("cut_9999_000001"));
  EXPECT_GT(*ParseCutName("cut_0001_1000000"), *ParseCutName("cut_0001_999999"));
  EXPECT_GT(*ParseCutName("cut_0002_000001"), *ParseCutName("cut_0001_000009"));
}

TEST(FolderOfCut, IsInTheRunsCheckpoints) {
  EXPECT_EQ(FolderOfCut("/runs/a", CutName(3, 12)), "/runs/a/checkpoints/cut_0003_000012");
  EXPECT_EQ(FolderOfCut("/runs/a", ""), "");
}

TEST_F(RunLogTest, PartitionsAreThoseOfAllEntriesInTheirOrder) {
  RunLog log = Open();
  EXPECT_TRUE(log.topics().empty());
  RunLogEntry first = Topics(0, "K", {Partition("clicks", 0, 5), Partition("clicks", 2, 7)});
  *first.mutable_topics()->add_topics() =
      Topics(1, "V", {Partition("clicks", 0, 1)}).topics().topics(0);
  for (const RunLogEntry& entry : {Generation(1, BEGAN_START), first, Cut(1, 1),
                                   Topics(0, "K", {Partition("clicks", 1, 0)})}) {
    ASSERT_TRUE(log.Append(entry).ok());
  }
  for (const RunLog& each : {log, Open()}) {
    ASSERT_EQ(each.topics().size(), 2u);
    EXPECT_EQ(each.topics()[0].cluster_id(), "K");
    ASSERT_EQ(each.topics()[0].partitions_size(), 3);
    EXPECT_EQ(each.topics()[0].partitions(1).start(), 7u);
    EXPECT_EQ(each.topics()[0].partitions(2).partition(), 1);
    EXPECT_EQ(each.topics()[1].stream(), 1u);
    EXPECT_EQ(each.topics()[1].partitions_size(), 1);
  }
}

TEST_F(RunLogTest, TopicsDisturbNoOtherEntry) {
  RunLog log = Open();
  for (const RunLogEntry& entry :
       {Generation(1, BEGAN_START), Cut(1, 1), Generation(2, "x", "cut_0001_000001"),
        Topics(0, "K", {Partition("clicks", 0, 5)}), Generation(3, "y", "cut_0001_000001"),
        Topics(0, "K", {Partition("clicks", 1, 0)})}) {
    ASSERT_TRUE(log.Append(entry).ok());
  }
  EXPECT_EQ(log.restarts_without_cut(), 2);
  EXPECT_EQ(log.next_start(), "cut_0001_000001");
  EXPECT_EQ(log.last_generation()->generation(), 3u);
  EXPECT_EQ(log.last_cut()->cut(), "cut_0001_000001");
  EXPECT_EQ(log.end(), nullptr);
}

TEST_F(RunLogTest, APartitionThatIsAddedAgainAndAnotherClusterAreRefused) {
  RunLog log = Open();
  ASSERT_TRUE(log.Append(Topics(0, "K", {Partition("clicks", 0, 5)})).ok());
  for (const RunLogEntry& entry :
       {Topics(0, "K", {Partition("views", 0, 0), Partition("clicks", 0, 9)}),
        Topics(0, "K", {Partition("views", 0, 0), Partition("views", 0, 0)}),
        Topics(0, "L", {Partition("clicks", 1, 0)})}) {
    EXPECT_EQ(log.Append(entry).code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(log.topics()[0].partitions_size(), 1);
    EXPECT_EQ(log.entries().size(), 1u);
    EXPECT_FALSE(disk_.Exists("/runs/a/log/00000002"));
  }
  ASSERT_TRUE(log.Append(Topics(0, "K", {Partition("clicks", 1, 0)})).ok()) << "the log goes on";
  // A user has copied an entry of this log over another one.
  disk_.Put("/runs/a/log/00000002", disk_.ContentOf("/runs/a/log/00000001"));
  EXPECT_EQ(OpenError().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(OpenError().message()),
              HasSubstr("/runs/a/log/00000002 adds partition 0 of topic clicks a second time"));
}

}  // namespace
}  // namespace satrap
