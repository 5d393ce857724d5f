#include "tests/simulation/lives/sim_log.h"

#include <memory>
#include <string>

#include "common/base/check.h"
#include "common/checkpoint/checked_text.h"
#include "common/checkpoint/run_log.h"
#include "gtest/gtest.h"
#include "tests/simulation/machine/sim_disk.h"

namespace satrap::simulation {
namespace {

constexpr char kRun[] = "/run";
constexpr char kFirst[] = "/run/log/00000001";

RunLogEntry GenerationOf(uint64_t number, const std::string& job) {
  RunLogEntry entry;
  entry.mutable_generation()->set_generation(number);
  entry.mutable_generation()->set_began(number == 1 ? BEGAN_START : BEGAN_RESTART);
  entry.mutable_generation()->mutable_job()->set_name(job);
  return entry;
}

RunLogEntry CutOf(uint64_t generation, const std::string& cut) {
  RunLogEntry entry;
  entry.mutable_cut()->set_generation(generation);
  entry.mutable_cut()->set_cut(cut);
  return entry;
}

class SimLogTest : public testing::Test {
 protected:
  SimLogTest() { CHECK_OK(disk_->CreateFolders(kRun)); }

  void Append(const RunLogEntry& entry) {
    auto log = RunLog::Open(kRun, disk_.get());
    CHECK_OK(log.status());
    CHECK_OK(log->Append(entry));
  }
  void Overwrite(const char* path, const RunLogEntry& entry) {
    CHECK_OK(WriteCheckedText(path, entry, disk_.get()));
  }

  SimDisk machine_{1};
  const std::unique_ptr<FileSystem> disk_ = machine_.Mount();
  SimLogReader reader_{kRun, disk_.get()};
};

TEST_F(SimLogTest, ReadsWhatARunLogReadsAfterEveryAppendAndCompaction) {
  auto log = RunLog::Open(kRun, disk_.get());
  CHECK_OK(log.status());
  const auto check = [&] {
    const absl::StatusOr<SimLog> read = reader_.Read();
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->number, log->number());
    EXPECT_EQ(read->compacted_number, log->compacted_number());
    EXPECT_EQ(read->left_out_cuts, log->left_out_cuts());
    ASSERT_EQ(read->entries.size(), log->entries().size());
    for (size_t i = 0; i < read->entries.size(); ++i) {
      const RunLogEntry& expected = log->entries()[i];
      EXPECT_EQ(read->entries[i]->message.ShortDebugString(), expected.ShortDebugString());
      EXPECT_EQ(read->entries[i]->bytes, expected.SerializeAsString());
      EXPECT_EQ(read->entries[i]->job, expected.generation().job().SerializeAsString());
    }
  };
  check();
  for (uint64_t generation = 1; generation <= 4; ++generation) {
    CHECK_OK(log->Append(GenerationOf(generation, "a job")));
    check();
    CHECK_OK(log->Append(CutOf(generation, "cut " + std::to_string(generation))));
    check();
    if (generation % 2 != 0) continue;
    CHECK_OK(log->Compact(/*unix_ms=*/generation));
    check();
    CHECK_OK(log->RemoveCompacted(/*most=*/2));
    check();
  }
  EXPECT_GT(log->left_out_cuts(), 0u);
}

TEST_F(SimLogTest, ParsesAnEntryOnce) {
  Append(GenerationOf(1, "a job"));
  const absl::StatusOr<SimLog> before = reader_.Read();
  Append(CutOf(1, "cut"));
  const absl::StatusOr<SimLog> after = reader_.Read();
  ASSERT_EQ(before->entries.size(), 1u);
  ASSERT_EQ(after->entries.size(), 2u);
  EXPECT_EQ(after->entries[0], before->entries[0]);
}

TEST_F(SimLogTest, SeesThatAnEntryIsAnotherOneThanAtTheLookBefore) {
  Append(GenerationOf(1, "a job"));
  Append(CutOf(1, "cut"));
  ASSERT_TRUE(reader_.Read().ok());
  Overwrite(kFirst, GenerationOf(1, "other"));
  const absl::StatusOr<SimLog> log = reader_.Read();
  ASSERT_TRUE(log.ok()) << log.status();
  EXPECT_EQ(log->entries[0]->message.generation().job().name(), "other");
  EXPECT_EQ(log->entries[1]->message.cut().cut(), "cut");
}

TEST_F(SimLogTest, SeesAnEntryThatIsDamagedOrGoneSinceTheLookBefore) {
  Append(GenerationOf(1, "a job"));
  Append(CutOf(1, "cut"));
  ASSERT_TRUE(reader_.Read().ok());
  {
    const auto file = disk_->Create(kFirst);
    CHECK_OK(file.status());
    CHECK_OK((*file)->Append("generation { generation: 1 }\n# crc32c 00000000\n"));
  }
  EXPECT_TRUE(absl::IsDataLoss(reader_.Read().status()));
  EXPECT_TRUE(absl::IsDataLoss(reader_.Read().status())) << "again";
  Overwrite(kFirst, RunLogEntry());
  EXPECT_TRUE(absl::IsDataLoss(reader_.Read().status())) << "it is of no kind";
  CHECK_OK(disk_->Remove(kFirst));
  EXPECT_TRUE(absl::IsDataLoss(reader_.Read().status()));
  Overwrite(kFirst, GenerationOf(1, "a job"));
  EXPECT_TRUE(reader_.Read().ok());
}

}  // namespace
}  // namespace satrap::simulation
