#include "common/checkpoint/cut_identity.h"

#include <filesystem>

#include "common/checkpoint/manifest.h"
#include "common/file/testing/memory_file_system.h"
#include "common/testing/temp_dir.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

CheckpointManifest ManifestOf(uint64_t generation, uint64_t cut) {
  CheckpointManifest manifest;
  manifest.set_version(kManifestVersion);
  manifest.set_generation(generation);
  manifest.set_cut(cut);
  manifest.set_step(10 * cut);
  manifest.set_order_fingerprint(7);
  return manifest;
}

RunLogEntry EntryOf(const CheckpointManifest& manifest) {
  RunLogEntry entry;
  CutEntry* cut = entry.mutable_cut();
  cut->set_generation(manifest.generation());
  cut->set_cut(CutName(manifest.generation(), manifest.cut()));
  cut->set_step(manifest.step());
  cut->set_order_fingerprint(manifest.order_fingerprint());
  return entry;
}

// The log of a run on a disk in memory, with cut_0002_000003 committed.
class CutIdentityTest : public testing::Test {
 protected:
  CutIdentityTest() { EXPECT_TRUE(disk_.CreateFolders("/runs/a").ok()); }

  RunLog LogWith(const RunLogEntry& entry) {
    RunLog log = *RunLog::Open("/runs/a", &disk_);
    EXPECT_TRUE(log.Append(entry).ok());
    return log;
  }
  // Checks a folder that holds `manifest`.
  absl::Status Check(const RunLog& log, const CheckpointManifest& manifest,
                     const std::string& folder = "/runs/a/checkpoints/cut_0002_000003") {
    EXPECT_TRUE(disk_.CreateFolders(folder).ok());
    EXPECT_TRUE(WriteManifest(folder, manifest, &disk_).ok());
    uint32_t crc32c = 0;
    const auto read = ReadManifest(folder, &disk_, &crc32c);
    EXPECT_TRUE(read.ok()) << read.status();
    return CheckCutIdentity(log, folder, *read, crc32c);
  }
  uint32_t Crc32cOf(const CheckpointManifest& manifest) {
    EXPECT_TRUE(disk_.CreateFolders("/m").ok());
    EXPECT_TRUE(WriteManifest("/m", manifest, &disk_).ok());
    uint32_t crc32c = 0;
    EXPECT_TRUE(ReadManifest("/m", &disk_, &crc32c).ok());
    return crc32c;
  }

  MemoryFileSystem disk_;
  CheckpointManifest manifest_ = ManifestOf(2, 3);
};

TEST_F(CutIdentityTest, TheCommittedCutIsTheOneOfTheLog) {
  RunLogEntry entry = EntryOf(manifest_);
  entry.mutable_cut()->set_manifest_crc32c(Crc32cOf(manifest_));
  EXPECT_TRUE(Check(LogWith(entry), manifest_).ok());
}

TEST_F(CutIdentityTest, TheFirstDifferenceIsNamed) {
  RunLogEntry entry = EntryOf(manifest_);
  entry.mutable_cut()->set_manifest_crc32c(Crc32cOf(manifest_));
  const RunLog log = LogWith(entry);
  CheckpointManifest other_step = manifest_;
  other_step.set_step(31);
  CheckpointManifest other_order = manifest_;
  other_order.set_order_fingerprint(8);
  CheckpointManifest other_rows = manifest_;
  other_rows.add_table_files()->set_crc32c(5);
  for (const auto& [manifest, difference] : std::vector<std::pair<CheckpointManifest, std::string>>{
           {ManifestOf(1, 3), "is that of cut_0001_000003"},
           {ManifestOf(2, 4), "is that of cut_0002_000004"},
           {other_step, "of step 31, but the log's entry is of step 30"},
           {other_order, "sample order 0000000000000008, but the log's entry has"},
           {other_rows, "has the checksum"}}) {
    const absl::Status status = Check(log, manifest);
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << difference;
    EXPECT_THAT(status.message(),
                AllOf(HasSubstr("/runs/a/checkpoints/cut_0002_000003 is not the cut that the run's "
                                "log names"),
                      HasSubstr(difference)));
  }
}

TEST_F(CutIdentityTest, AnEntryOfAnOlderBuildIsComparedInWhatItHas) {
  RunLogEntry entry = EntryOf(manifest_);
  entry.mutable_cut()->clear_order_fingerprint();
  const RunLog log = LogWith(entry);
  EXPECT_TRUE(Check(log, manifest_).ok());
  CheckpointManifest other_step = manifest_;
  other_step.set_step(31);
  EXPECT_EQ(Check(log, other_step).code(), absl::StatusCode::kDataLoss);
}

TEST_F(CutIdentityTest, ACutThatTheLogDoesNotNameWasNotCommitted) {
  const absl::Status status =
      Check(LogWith(EntryOf(manifest_)), ManifestOf(2, 9), "/runs/a/checkpoints/cut_0002_000009");
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("no cut cut_0002_000009"));
}

// The paths are on a real disk, but the log is on the disk in memory.
class NameOfCutTest : public CutIdentityTest {
 protected:
  NameOfCutTest() {
    MakeCuts("a");
    MakeCuts("b");
    before_ = fs::current_path();
  }
  ~NameOfCutTest() override { fs::current_path(before_); }

  void MakeCuts(const std::string& run) {
    const fs::path cuts = root_ / run / "checkpoints";
    fs::create_directories(cuts / "cut_0002_000003");
    fs::create_directories(cuts / "cut_0002_000004");  // not committed
    fs::create_directory_symlink("cut_0002_000003", cuts / "latest");
    fs::create_directory_symlink("cut_0002_000001", cuts / "best");  // the log has no such cut
  }
  absl::StatusOr<std::string> NameOf(const std::string& typed, const std::string& run = "a") {
    return NameOfCut(log_, (root_ / run).string(), typed);
  }

  const TempDir temp_;
  const fs::path root_ = fs::canonical(temp_.path());
  fs::path before_;
  RunLog log_ = LogWith(EntryOf(manifest_));
};

TEST_F(NameOfCutTest, IsFoundByNameByLinkAndByPath) {
  const std::string cuts = (root_ / "a" / "checkpoints").string();
  for (const std::string& typed :
       {std::string("cut_0002_000003"), std::string("latest"), cuts + "/cut_0002_000003",
        cuts + "/latest", cuts + "/latest/", cuts + "/../checkpoints/cut_0002_000003"}) {
    const auto name = NameOf(typed);
    ASSERT_TRUE(name.ok()) << typed << ": " << name.status();
    EXPECT_EQ(*name, "cut_0002_000003") << typed;
  }
  fs::current_path(root_);
  EXPECT_EQ(*NameOf("a/checkpoints/cut_0002_000003"), "cut_0002_000003");
  EXPECT_EQ(*NameOf("./a/checkpoints/latest"), "cut_0002_000003");
}

TEST_F(NameOfCutTest, ARunThatWasMovedOrIsReachedByALinkHasTheSameCuts) {
  fs::rename(root_ / "a", root_ / "moved");
  fs::create_directory_symlink("moved", root_ / "newest");
  for (const std::string run : {"moved", "newest"}) {
    for (const std::string path : {"moved", "newest"}) {
      EXPECT_EQ(*NameOf((root_ / path / "checkpoints/cut_0002_000003").string(), run),
                "cut_0002_000003");
    }
  }
}

TEST_F(NameOfCutTest, ACutOfAnotherRunIsRefusedAndTheWayForItIsNamed) {
  const std::string other = (root_ / "b/checkpoints/cut_0002_000003").string();
  for (const std::string& typed : {other, (root_ / "b/checkpoints/latest").string(),
                                   std::string("../b/checkpoints/cut_0002_000003"),
                                   std::string(".."), std::string("."), std::string("")}) {
    EXPECT_EQ(NameOf(typed).status().code(), absl::StatusCode::kFailedPrecondition) << typed;
  }
  EXPECT_THAT(NameOf(other).status().message(),
              AllOf(HasSubstr("only from its own cuts"),
                    HasSubstr("satrap train JOB --init_from " + other)));
}

TEST_F(NameOfCutTest, WhatTheLogDoesNotNameIsRefused) {
  for (const std::string typed : {"cut_0002_000004", "best", "none", "checkpoints"}) {
    const absl::Status status = NameOf(typed).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << typed;
    EXPECT_THAT(status.message(), AllOf(HasSubstr("not in the log"), HasSubstr("--init_from")));
  }
}

}  // namespace
}  // namespace satrap
