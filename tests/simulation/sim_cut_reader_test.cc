#include "tests/simulation/sim_cut_reader.h"

#include <memory>
#include <string>

#include "common/base/check.h"
#include "common/checkpoint/manifest.h"
#include "gtest/gtest.h"
#include "tests/simulation/data/sim_data.h"
#include "tests/simulation/machine/sim_disk.h"

namespace satrap::simulation {
namespace {

constexpr char kCut[] = "/run/checkpoints/cut";
constexpr char kOther[] = "/run/checkpoints/other";

class CutReaderTest : public testing::Test {
 protected:
  // Writes a cut without rows.
  void Write(const std::string& folder, uint64_t step) {
    CheckpointManifest manifest;
    manifest.set_version(kManifestVersion);
    manifest.set_step(step);
    manifest.mutable_position()->set_step(step);
    for (const TableConfig& table : job_.tables()) {
      SavedTable* saved = manifest.add_tables();
      saved->set_id(table.id());
      saved->set_name(table.name());
      saved->set_fingerprint(TableFingerprint(table));
    }
    CHECK_OK(disk_->CreateFolders(folder));
    CHECK_OK(WriteManifest(folder, manifest, disk_.get()));
  }
  // The step of the cut; -1 if it does not load.
  int64_t StepOf(const std::string& folder) {
    const absl::StatusOr<CutContent> content = reader_.Read(folder);
    return content.ok() ? static_cast<int64_t>(content->position.step()) : -1;
  }

  const JobConfig job_ = MakeJob(WorldShape::Draw(1));
  SimDisk machine_{1};
  const std::unique_ptr<FileSystem> disk_ = machine_.Mount();
  CutReader reader_{job_, disk_.get()};
};

TEST_F(CutReaderTest, ReadsACutWithoutRows) {
  Write(kCut, 3);
  const absl::StatusOr<CutContent> content = reader_.Read(kCut);
  ASSERT_TRUE(content.ok()) << content.status();
  EXPECT_EQ(content->position.step(), 3u);
  EXPECT_EQ(content->tables.rows, 0u);
  EXPECT_FALSE(content->tables.read_row(1, 5).has_value());
}

TEST_F(CutReaderTest, LoadsACutOnceWhileItsBytesStay) {
  Write(kCut, 3);
  EXPECT_EQ(StepOf(kCut), 3);
  const int64_t of_first = machine_.counts().reads;
  EXPECT_EQ(StepOf(kCut), 3);
  EXPECT_LT(machine_.counts().reads, 2 * of_first);
}

TEST_F(CutReaderTest, SeesThatACutHasChangedOrIsGoneOrIsAnotherOne) {
  Write(kCut, 3);
  Write(kOther, 4);
  EXPECT_EQ(StepOf(kCut), 3);
  EXPECT_EQ(StepOf(kOther), 4);
  EXPECT_EQ(StepOf(kCut), 3);
  Write(kCut, 5);
  EXPECT_EQ(StepOf(kCut), 5);
  {
    const auto file = disk_->Create(std::string(kCut) + "/manifest");
    CHECK_OK(file.status());
    CHECK_OK((*file)->Append("version: 4\n# crc32c 00000000\n"));
  }
  EXPECT_EQ(StepOf(kCut), -1);
  EXPECT_EQ(StepOf(kCut), -1) << "again";
  Write(kCut, 5);
  EXPECT_EQ(StepOf(kCut), 5);
  CHECK_OK(disk_->Remove(kCut));
  EXPECT_EQ(StepOf(kCut), -1);
}

}  // namespace
}  // namespace satrap::simulation
