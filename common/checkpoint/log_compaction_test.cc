#include "common/checkpoint/log_compaction.h"

#include <string>

#include "common/checkpoint/checked_text.h"
#include "common/checkpoint/cut_identity.h"
#include "common/checkpoint/entries/incomplete_since.h"
#include "common/checkpoint/entries/job_of_run.h"
#include "common/checkpoint/entries/run_end.h"
#include "common/checkpoint/run_log.h"
#include "common/file/testing/memory_file_system.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kRun[] = "/runs/a";

RunLogEntry Generation(uint64_t generation, Began began, const std::string& cut, int pss) {
  RunLogEntry entry;
  entry.mutable_generation()->set_generation(generation);
  entry.mutable_generation()->set_run_id(7);
  entry.mutable_generation()->set_began(began);
  entry.mutable_generation()->set_cut(cut);
  entry.mutable_generation()->mutable_job()->mutable_embedding_ps()->set_replicas(pss);
  if (began == BEGAN_RESTART) {
    entry.mutable_generation()->mutable_ended()->set_text("before " + std::to_string(generation));
  }
  return entry;
}

RunLogEntry Cut(uint64_t generation, uint64_t cut) {
  RunLogEntry entry;
  entry.mutable_cut()->set_generation(generation);
  entry.mutable_cut()->set_cut(CutName(generation, cut));
  entry.mutable_cut()->set_step(10 * cut);
  entry.mutable_cut()->set_manifest_crc32c(static_cast<uint32_t>(100 * generation + cut));
  return entry;
}

RunLogEntry Topics(int partition) {
  RunLogEntry entry;
  StreamTopics* topics = entry.mutable_topics()->add_topics();
  topics->set_cluster_id("K");
  topics->add_partitions()->set_topic("clicks");
  topics->mutable_partitions(0)->set_partition(partition);
  return entry;
}

RunLogEntry Running(uint64_t generation) {
  RunLogEntry entry;
  entry.mutable_running()->set_generation(generation);
  return entry;
}

int PssOf(const GenerationEntry& entry) { return entry.job().embedding_ps().replicas(); }

class LogCompactionTest : public testing::Test {
 protected:
  LogCompactionTest() { EXPECT_TRUE(disk_.CreateFolders(kRun).ok()); }

  RunLog Open(uint64_t writer = 1) {
    absl::StatusOr<RunLog> log = RunLog::Open(kRun, &disk_, writer);
    EXPECT_TRUE(log.ok()) << log.status();
    return *std::move(log);
  }
  void MakeFolderOf(const CutEntry& cut) {
    ASSERT_TRUE(disk_.CreateFolders(FolderOfCut(kRun, cut.cut())).ok());
  }
  static std::string PathOf(size_t number) {
    return "/runs/a/log/0000000" + std::to_string(number);
  }

  MemoryFileSystem disk_;
};

TEST_F(LogCompactionTest, KeepsWhatIsStillAskedFor) {
  RunLog log = Open();
  const std::string second = CutName(2, 2);
  for (const RunLogEntry& entry :
       {Generation(1, BEGAN_START, "", 1), Topics(0), Running(1), Cut(1, 1),
        Generation(2, BEGAN_RESUME, CutName(1, 1), 2), Running(2), Cut(2, 1), Topics(1), Cut(2, 2),
        Cut(2, 3), Generation(3, BEGAN_RESUME, CutName(2, 3), 3), Running(3),
        Generation(4, BEGAN_RESUME, second, 3), Generation(5, BEGAN_RESTART, second, 3)}) {
    ASSERT_TRUE(log.Append(entry).ok());
  }
  MakeFolderOf(Cut(2, 1).cut());
  ASSERT_TRUE(log.Compact(77).ok());
  EXPECT_EQ(log.number(), 15u);
  EXPECT_EQ(log.compacted_number(), 15u);
  ASSERT_TRUE(log.RemoveCompacted(100).ok());
  ASSERT_TRUE(log.Append(Generation(6, BEGAN_RESTART, second, 3)).ok());
  for (const RunLog& each : {log, Open()}) {
    EXPECT_EQ(each.number(), 16u);
    EXPECT_EQ(each.compacted_number(), 15u);
    EXPECT_EQ(each.FindCut(CutName(1, 1)), nullptr) << "its folder is gone";
    ASSERT_NE(each.FindCut(CutName(2, 1)), nullptr) << "its folder is there";
    EXPECT_EQ(each.FindCut(CutName(2, 1))->manifest_crc32c(), 201u);
    ASSERT_NE(each.FindCut(second), nullptr) << "the next generation begins from it";
    ASSERT_NE(each.FindCut(CutName(2, 3)), nullptr) << "it is the newest";
    EXPECT_EQ(each.left_out_cuts(), 1u);
    EXPECT_EQ(each.next_start(), second);
    EXPECT_EQ(each.restarts_without_cut(), 2);
    EXPECT_EQ(LastThatRan(each.entries())->generation(), 3u);
    ASSERT_EQ(each.topics().size(), 1u);
    EXPECT_EQ(each.topics()[0].partitions_size(), 2);
    EXPECT_EQ(each.topics()[0].partitions(1).partition(), 1);
    std::vector<std::string> generations;
    for (const RunLogEntry& entry : each.entries()) {
      if (!entry.has_generation()) continue;
      const GenerationEntry& generation = entry.generation();
      generations.push_back(std::to_string(generation.generation()) + " from " +
                            std::to_string(generation.from_step()) + " with " +
                            (generation.has_job() ? std::to_string(PssOf(generation)) : "no job") +
                            " " + CauseText(generation));
    }
    EXPECT_THAT(generations, ElementsAre("1 from 0 with no job start", "2 from 10 with 2 resume",
                                         "3 from 30 with 3 resume", "4 from 20 with no job resume",
                                         "5 from 20 with 3 before 5", "6 from 0 with 3 before 6"));
  }
}

TEST_F(LogCompactionTest, KeepsTheEndAndWhichSubmissionItIsOf) {
  RunLog log = Open();
  RunLogEntry end;
  end.mutable_end()->set_state(STOPPED);
  end.mutable_end()->set_submission(1);
  RunLogEntry resumed = Generation(2, BEGAN_RESUME, CutName(1, 1), 2);
  resumed.mutable_generation()->set_submission(2);
  for (const RunLogEntry& entry : {Generation(1, BEGAN_START, "", 1), Cut(1, 1), end}) {
    ASSERT_TRUE(log.Append(entry).ok());
  }
  ASSERT_TRUE(log.Compact(7).ok());
  ASSERT_NE(Open().end(), nullptr);
  EXPECT_EQ(Open().end()->state(), STOPPED);
  ASSERT_TRUE(log.Append(resumed).ok());
  ASSERT_TRUE(log.Compact(8).ok());
  EXPECT_EQ(Open().end(), nullptr) << "it was resumed";
  EXPECT_EQ(SubmissionOf(Open().entries()), 2u);
}

TEST_F(LogCompactionTest, CompactsWhatIsCompacted) {
  RunLog log = Open();
  ASSERT_TRUE(log.Append(Generation(1, BEGAN_START, "", 1)).ok());
  for (uint64_t cut = 1; cut <= 30; ++cut) {
    ASSERT_TRUE(log.Append(Cut(1, cut)).ok());
    if (cut % 10 == 0) {
      ASSERT_TRUE(log.Compact(cut).ok());
      ASSERT_TRUE(log.RemoveCompacted(100).ok());
    }
  }
  const RunLog again = Open();
  EXPECT_EQ(again.entries().size(), 2u) << "the generation and the newest cut";
  EXPECT_EQ(again.left_out_cuts(), 29u);
  EXPECT_EQ(disk_.List("/runs/a/log")->size(), 1u);
}

TEST_F(LogCompactionTest, NothingIsRemovedBeforeTheEntryIsDurable) {
  RunLog log = Open(/*writer=*/0xab);
  ASSERT_TRUE(log.Append(Generation(1, BEGAN_START, "", 1)).ok());
  ASSERT_TRUE(log.Append(Cut(1, 1)).ok());
  disk_.TakeOperations();
  ASSERT_TRUE(log.Compact(1).ok());
  const std::string draft = "/runs/a/log/00000003.00000000000000ab.partial";
  EXPECT_THAT(disk_.TakeOperations(),
              ElementsAre("create " + draft, "append " + draft, "sync " + draft,
                          "hard_link " + draft + " /runs/a/log/00000003", "remove " + draft,
                          "sync_folder /runs/a/log"));
  ASSERT_TRUE(log.RemoveCompacted(1).ok());
  EXPECT_THAT(disk_.TakeOperations(), ElementsAre("remove " + PathOf(1)));
  ASSERT_TRUE(log.RemoveCompacted(5).ok());
  EXPECT_THAT(disk_.TakeOperations(), ElementsAre("remove " + PathOf(2)));
}

TEST_F(LogCompactionTest, WhatStandsBelowItCountsForNothing) {
  RunLog log = Open();
  for (uint64_t cut = 1; cut <= 4; ++cut) ASSERT_TRUE(log.Append(Cut(1, cut)).ok());
  ASSERT_TRUE(log.Compact(1).ok());
  // The state after a power failure: some files below the COMPACTED entry are gone, another is
  // damaged.
  ASSERT_TRUE(disk_.Remove(PathOf(2)).ok());
  disk_.Put(PathOf(3), "half");
  EXPECT_EQ(Open().last_cut()->cut(), CutName(1, 4));
  EXPECT_EQ(Open().left_out_cuts(), 3u);
}

// When the file of an entry was removed, its number is free again. So a coordinator that was held
// up can still link an entry under that number. That entry must not count.
TEST_F(LogCompactionTest, AnEntryThatComesTooLateIsNoCommit) {
  RunLog held_up = Open(1);
  ASSERT_TRUE(held_up.Append(Generation(1, BEGAN_START, "", 1)).ok());
  RunLog other = Open(2);
  ASSERT_TRUE(other.Append(Generation(2, BEGAN_RESTART, "", 1)).ok());
  ASSERT_TRUE(other.Compact(1).ok());
  ASSERT_TRUE(other.RemoveCompacted(100).ok());
  ASSERT_FALSE(disk_.Exists(PathOf(2)));
  EXPECT_EQ(held_up.Append(Cut(1, 1)).code(), absl::StatusCode::kAborted);
  EXPECT_TRUE(disk_.Exists(PathOf(2))) << "the link was free";
  EXPECT_TRUE(*held_up.HasForeignEntry()) << "it must not append again";
  EXPECT_EQ(held_up.entries().size(), 1u);
  EXPECT_EQ(Open().last_cut(), nullptr);
  EXPECT_EQ(Open().last_generation()->generation(), 2u);
  ASSERT_TRUE(other.Append(Cut(2, 1)).ok()) << "the other goes on";
  ASSERT_TRUE(other.RemoveCompacted(100).ok());
  EXPECT_FALSE(disk_.Exists(PathOf(2)));
}

// A slow coordinator links its entry, and another one appends before the slow one's Append returns.
// The slow one's Append fails with ABORTED, but its entry counts, because the other coordinator has
// read it.
TEST_F(LogCompactionTest, WhoIsOvertakenAfterItsLinkIsNotToldThatItsEntryIsInTheLog) {
  RunLog slow = Open(1);
  ASSERT_TRUE(slow.Append(Generation(1, BEGAN_START, "", 1)).ok());
  bool overtaken = false;
  disk_.SetHook([&](const std::string& operation) {
    if (operation != "sync_folder /runs/a/log" || overtaken) return absl::OkStatus();
    overtaken = true;
    EXPECT_TRUE(Open(2).Append(Generation(2, BEGAN_RESTART, CutName(1, 1), 1)).ok());
    return absl::OkStatus();
  });
  EXPECT_EQ(slow.Append(Cut(1, 1)).code(), absl::StatusCode::kAborted);
  EXPECT_EQ(Open().next_start(), CutName(1, 1));
}

RunLogEntry Left(uint64_t generation) {
  RunLogEntry entry;
  entry.mutable_left()->set_generation(generation);
  entry.mutable_left()->mutable_ended()->set_why(Ending::MOVED);
  return entry;
}

TEST_F(LogCompactionTest, WhatTheNewestGenerationLeftForStaysWhenItIsTheNewestEntry) {
  RunLog log = Open();
  ASSERT_TRUE(log.Append(Generation(1, BEGAN_START, "", 2)).ok());
  ASSERT_TRUE(log.Append(Left(1)).ok());
  ASSERT_TRUE(log.Append(Generation(2, BEGAN_MOVED, "", 2)).ok());
  ASSERT_TRUE(log.Append(Left(2)).ok());
  ASSERT_TRUE(log.Compact(1).ok());
  EXPECT_TRUE(HasMoved(Open().entries()));
  EXPECT_EQ(Open().entries().size(), 3u) << "the earlier one has been obeyed";
  RunLogEntry cut = Cut(2, 1);
  cut.mutable_cut()->set_left_for(CutEntry::STOP);
  ASSERT_TRUE(log.Append(cut).ok());
  ASSERT_TRUE(log.Compact(1).ok());
  EXPECT_NE(LeftFor(Open().entries(), CutEntry::STOP), nullptr);
  EXPECT_FALSE(HasMoved(Open().entries()));
}

RunLogEntry Complete(uint64_t generation) {
  RunLogEntry entry;
  entry.mutable_complete()->set_generation(generation);
  return entry;
}

TEST_F(LogCompactionTest, KnowsForHowLongTheRunHasLackedMembers) {
  RunLog log = Open();
  for (uint64_t generation = 1; generation <= 4; ++generation) {
    RunLogEntry began = Generation(generation, BEGAN_RESTART, "", 2);
    began.set_unix_ms(100 * generation);
    ASSERT_TRUE(log.Append(began).ok());
    if (generation > 2) continue;
    ASSERT_TRUE(log.Append(Complete(generation)).ok());
  }
  const size_t entries = log.entries().size();
  ASSERT_TRUE(log.Compact(1).ok());
  EXPECT_EQ(Open().entries().size(), entries - 1) << "the newest COMPLETE is enough";
  EXPECT_EQ(IncompleteSinceMs(Open().entries()), 300);
}

TEST_F(LogCompactionTest, AReaderWhoseFileIsGoneListsAgain) {
  RunLog log = Open();
  for (uint64_t cut = 1; cut <= 4; ++cut) ASSERT_TRUE(log.Append(Cut(1, cut)).ok());
  for (size_t at = 1; at <= 4; ++at) {
    SCOPED_TRACE(at);
    bool compacted = false;
    disk_.SetOpenHook([&](const std::string& path) {
      if (path != PathOf(at) || compacted) return absl::OkStatus();
      compacted = true;
      EXPECT_TRUE(log.Compact(1).ok());
      EXPECT_TRUE(log.RemoveCompacted(100).ok());
      return absl::OkStatus();
    });
    const RunLog read = Open(2);
    EXPECT_TRUE(compacted);
    EXPECT_EQ(read.number(), log.number());
    EXPECT_EQ(read.last_cut()->cut(), log.last_cut()->cut());
    disk_.SetOpenHook(nullptr);
    // Writes the log anew, because each round of the loop begins from the same state.
    disk_ = MemoryFileSystem();
    ASSERT_TRUE(disk_.CreateFolders(kRun).ok());
    log = Open();
    for (uint64_t cut = 1; cut <= 4; ++cut) ASSERT_TRUE(log.Append(Cut(1, cut)).ok());
  }
}

TEST_F(LogCompactionTest, AFileThatIsListedAndNotThereIsNoEndlessLoop) {
  RunLog log = Open();
  for (uint64_t cut = 1; cut <= 3; ++cut) ASSERT_TRUE(log.Append(Cut(1, cut)).ok());
  disk_.SetOpenHook([](const std::string& path) {
    return path == PathOf(2) ? absl::NotFoundError(path + " is not there") : absl::OkStatus();
  });
  const absl::Status status = RunLog::Open(kRun, &disk_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr(PathOf(2)));
}

}  // namespace
}  // namespace satrap
