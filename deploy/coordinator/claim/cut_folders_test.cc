#include "deploy/coordinator/claim/cut_folders.h"

#include "absl/strings/str_cat.h"
#include "common/checkpoint/cut_pin.h"
#include "common/checkpoint/manifest.h"
#include "common/file/testing/memory_file_system.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using ::testing::HasSubstr;

constexpr char kRun[] = "/runs/a";

class CutFoldersTest : public testing::Test {
 protected:
  CutFoldersTest() { EXPECT_TRUE(disk_.CreateFolders(kRun).ok()); }

  std::string At(uint64_t cut, const std::string& file = "") const {
    return FolderOfCut(kRun, CutName(2, cut)) + file;
  }
  // Makes a whole cut of generation 2 that records `best` as the best cut.
  void MakeCut(uint64_t cut, const std::string& best = "") {
    CheckpointManifest manifest;
    manifest.set_version(kManifestVersion);
    manifest.set_step(10 * cut);
    manifest.set_generation(2);
    manifest.set_cut(cut);
    manifest.set_dense_file("dense.bin");
    manifest.set_dense_bytes(4);
    SavedFile* rows = manifest.add_table_files();
    rows->set_name("rows.bin");
    rows->set_bytes(6);
    if (!best.empty()) manifest.mutable_position()->mutable_best()->set_cut(best);
    disk_.Put(At(cut, "/dense.bin"), "1234");
    disk_.Put(At(cut, "/rows.bin"), "123456");
    ASSERT_TRUE(WriteManifest(At(cut), manifest, &disk_).ok());
  }
  void Commit(uint64_t cut, bool is_best = false, const std::string& best = "") {
    MakeCut(cut, is_best ? CutName(2, cut) : best);
    RunLogEntry entry;
    entry.mutable_cut()->set_generation(2);
    entry.mutable_cut()->set_cut(CutName(2, cut));
    entry.mutable_cut()->set_best(is_best);
    ASSERT_TRUE(Log().Append(entry).ok());
  }
  RunLog Log() { return *RunLog::Open(kRun, &disk_, 99); }
  std::string CheckError(const std::string& name) {
    return std::string(cuts_.Check(name).status().ToString());
  }

  MemoryFileSystem disk_;
  CutFolders cuts_{kRun, 2, &disk_};
};

TEST_F(CutFoldersTest, AWholeCutHasItsStepAndItsBytes) {
  MakeCut(3);
  const auto cut = cuts_.Check("cut_0002_000003");
  ASSERT_TRUE(cut.ok()) << cut.status();
  EXPECT_EQ(cut->step(), 30u);
  EXPECT_EQ(cut->bytes(), 10u);
  EXPECT_EQ(cut->generation(), 2u);
  uint32_t crc32c = 0;
  ASSERT_TRUE(ReadManifest(At(3), &disk_, &crc32c).ok());
  EXPECT_EQ(cut->manifest_crc32c(), crc32c);
}

TEST_F(CutFoldersTest, AFileThatIsMissingOrShortIsNamed) {
  MakeCut(3);
  disk_.Put(At(3, "/rows.bin"), "12345");
  EXPECT_THAT(CheckError("cut_0002_000003"),
              testing::AllOf(HasSubstr("DATA_LOSS"), HasSubstr("rows.bin has 5 bytes"),
                             HasSubstr("says 6")));
  disk_.Put(At(3, "/rows.bin"), "123456");
  disk_.Put(At(3, "/dense.bin"), "123");
  EXPECT_THAT(CheckError("cut_0002_000003"), HasSubstr("dense.bin has 3 bytes"));
  ASSERT_TRUE(disk_.Remove(At(3, "/dense.bin")).ok());
  EXPECT_THAT(
      CheckError("cut_0002_000003"),
      testing::AllOf(HasSubstr("DATA_LOSS"), HasSubstr("finds no"), HasSubstr("dense.bin")));
  ASSERT_TRUE(disk_.Remove(At(3)).ok());
  EXPECT_THAT(CheckError("cut_0002_000003"), HasSubstr("DATA_LOSS"));
}

TEST_F(CutFoldersTest, AFileThatCannotBeReadIsNamedWhateverTheErrorIs) {
  MakeCut(3);
  for (const std::string file : {"/manifest", "/dense.bin", "/rows.bin"}) {
    disk_.SetOpenHook([path = At(3, file)](const std::string& opened) {
      return opened == path ? absl::FailedPreconditionError("cannot read " + path)
                            : absl::OkStatus();
    });
    EXPECT_THAT(CheckError("cut_0002_000003"),
                testing::AllOf(HasSubstr("DATA_LOSS"), HasSubstr(At(3, file))));
  }
}

TEST_F(CutFoldersTest, OnlyCutsOfThisGenerationAreChecked) {
  MakeCut(3);
  disk_.Put("/runs/a/checkpoints/cut_0001_000003/manifest", disk_.ContentOf(At(3, "/manifest")));
  EXPECT_THAT(CheckError("cut_0001_000003"), HasSubstr("FAILED_PRECONDITION"));
  EXPECT_THAT(CheckError("cut_0001_000009"), HasSubstr("FAILED_PRECONDITION")) << "by its name";
  disk_.Put(At(4, "/manifest"), disk_.ContentOf(At(3, "/manifest")));
  EXPECT_THAT(CheckError("cut_0002_000004"), HasSubstr("is of cut 3"));
  CheckpointManifest manifest = *ReadManifest(At(3), &disk_);
  manifest.set_generation(1);
  ASSERT_TRUE(WriteManifest(At(3), manifest, &disk_).ok());
  EXPECT_THAT(CheckError("cut_0002_000003"), HasSubstr("FAILED_PRECONDITION")) << "inside";
  for (const std::string name : {"", "..", "../checkpoints/cut_0002_000003", "cut_2_3", "best"}) {
    EXPECT_THAT(CheckError(name), HasSubstr("INVALID_ARGUMENT")) << name;
  }
}

TEST_F(CutFoldersTest, LinksNameTheNewestCutAndItsBest) {
  ASSERT_TRUE(cuts_.MoveLinks(Log()).ok()) << "without a cut";
  Commit(1, /*is_best=*/true);
  Commit(2, false, /*best=*/CutName(2, 1));
  disk_.TakeOperations();
  ASSERT_TRUE(cuts_.MoveLinks(Log()).ok());
  EXPECT_EQ(disk_.TakeOperations().back(), "sync_folder /runs/a/checkpoints");
  EXPECT_EQ(disk_.TargetOf("/runs/a/checkpoints/latest"), "cut_0002_000002");
  EXPECT_EQ(disk_.TargetOf("/runs/a/checkpoints/best"), "cut_0002_000001");
  Commit(3, /*is_best=*/true);
  // A link is moved in two operations. Set up the disk as if a coordinator died between them.
  ASSERT_TRUE(disk_.CreateLink("x", "/runs/a/checkpoints/latest.partial").ok());
  ASSERT_TRUE(cuts_.MoveLinks(Log()).ok());
  EXPECT_EQ(disk_.TargetOf("/runs/a/checkpoints/latest"), "cut_0002_000003");
  EXPECT_EQ(disk_.TargetOf("/runs/a/checkpoints/best"), "cut_0002_000003");
}

TEST_F(CutFoldersTest, LinksForgetTheBestOfABranchThatWasGivenUp) {
  Commit(1);
  Commit(2, /*is_best=*/true);
  ASSERT_TRUE(cuts_.MoveLinks(Log()).ok());
  // The run was set back to cut 1 and then took cut 3, which records no best cut.
  Commit(3);
  ASSERT_TRUE(cuts_.MoveLinks(Log()).ok());
  EXPECT_EQ(disk_.TargetOf("/runs/a/checkpoints/latest"), "cut_0002_000003");
  EXPECT_FALSE(disk_.Exists("/runs/a/checkpoints/best"));
}

TEST_F(CutFoldersTest, KeepsTheNewestAndTheBest) {
  Commit(1);
  Commit(2, /*is_best=*/true);
  for (uint64_t cut = 3; cut <= 6; ++cut) Commit(cut, false, /*best=*/CutName(2, 2));
  MakeCut(7);  // being written
  ASSERT_TRUE(cuts_.RemoveOld(Log(), /*keep=*/2).ok());
  for (const uint64_t cut : {2, 5, 6, 7}) EXPECT_TRUE(disk_.Exists(At(cut, "/manifest"))) << cut;
  for (const uint64_t cut : {1, 3, 4}) EXPECT_FALSE(disk_.Exists(At(cut))) << cut;
}

TEST_F(CutFoldersTest, TheCutThatTheNextGenerationBeginsFromIsAlwaysKept) {
  Commit(1);
  Commit(2);
  ASSERT_TRUE(cuts_.RemoveOld(Log(), /*keep=*/0).ok());
  EXPECT_FALSE(disk_.Exists(At(1)));
  EXPECT_TRUE(disk_.Exists(At(2, "/manifest")));
}

TEST_F(CutFoldersTest, OnlyEarlierGenerationsHaveCutsThatNobodyWillCommit) {
  Commit(1);
  MakeCut(2);  // of this generation
  for (const uint64_t generation : {1, 3}) {
    disk_.Put(FolderOfCut(kRun, CutName(generation, 1)) + "/manifest", "x");
  }
  ASSERT_TRUE(cuts_.RemoveUncommitted(Log()).ok());
  EXPECT_FALSE(disk_.Exists("/runs/a/checkpoints/cut_0001_000001/manifest"));
  EXPECT_TRUE(disk_.Exists("/runs/a/checkpoints/cut_0003_000001/manifest"));
  EXPECT_TRUE(disk_.Exists(At(1, "/manifest")));
  EXPECT_TRUE(disk_.Exists(At(2, "/manifest")));
}

TEST_F(CutFoldersTest, KeepsTheBestOfEachCutThatItKeeps) {
  Commit(1, /*is_best=*/true);
  Commit(2, /*is_best=*/true);
  Commit(3, false, /*best=*/CutName(2, 1));
  Commit(4, false, /*best=*/CutName(2, 1));
  Commit(5, /*is_best=*/true);
  ASSERT_TRUE(cuts_.RemoveOld(Log(), /*keep=*/2).ok());
  for (const uint64_t cut : {1, 4, 5}) EXPECT_TRUE(disk_.Exists(At(cut))) << cut;
  for (const uint64_t cut : {2, 3}) EXPECT_FALSE(disk_.Exists(At(cut))) << cut;
}

TEST_F(CutFoldersTest, RemovesNothingWhileItIsNotKnownWhichIsTheBestOfACutThatItKeeps) {
  Commit(1, /*is_best=*/true);
  Commit(2, false, /*best=*/CutName(2, 1));
  Commit(3, false, /*best=*/CutName(2, 1));
  const std::string manifest = disk_.ContentOf(At(3, "/manifest"));
  disk_.Put(At(3, "/manifest"), "damaged");
  EXPECT_TRUE(absl::IsDataLoss(cuts_.RemoveOld(Log(), /*keep=*/1)));
  for (const uint64_t cut : {1, 2, 3}) EXPECT_TRUE(disk_.Exists(At(cut, "/manifest"))) << cut;
  disk_.Put(At(3, "/manifest"), manifest);
  ASSERT_TRUE(cuts_.RemoveOld(Log(), /*keep=*/1).ok());
  EXPECT_TRUE(disk_.Exists(At(1))) << "the best";
  EXPECT_FALSE(disk_.Exists(At(2)));
  ASSERT_TRUE(disk_.Remove(At(3)).ok());
  EXPECT_TRUE(cuts_.RemoveOld(Log(), /*keep=*/1).ok()) << "a cut that is gone needs none";
}

TEST_F(CutFoldersTest, ACutThatAnotherCommandReadsIsRemovedOnceItIsDone) {
  for (uint64_t cut = 1; cut <= 3; ++cut) Commit(cut);
  auto pin = PinCut(At(1), &disk_);
  ASSERT_TRUE(pin.ok()) << pin.status();
  ASSERT_TRUE(cuts_.RemoveOld(Log(), /*keep=*/1).ok());
  EXPECT_TRUE(disk_.Exists(At(1, "/manifest")));
  EXPECT_TRUE(disk_.Exists(At(1, "/rows.bin")));
  EXPECT_FALSE(disk_.Exists(At(2))) << "one pin holds up no other cut";
  pin->reset();
  ASSERT_TRUE(cuts_.RemoveOld(Log(), /*keep=*/1).ok());
  EXPECT_FALSE(disk_.Exists(At(1)));
}

TEST_F(CutFoldersTest, WhoPinsACutForManyCutsIsTold) {
  for (uint64_t cut = 1; cut <= 2; ++cut) Commit(cut);
  const auto pin = PinCut(At(1), &disk_);
  ASSERT_TRUE(pin.ok()) << pin.status();
  for (int call = 1; call <= 25; ++call) {
    const absl::Status status = cuts_.RemoveOld(Log(), /*keep=*/1);
    if (call % CutFolders::kCallsUntilPinIsTold != 0) {
      EXPECT_TRUE(status.ok()) << status;
      continue;
    }
    EXPECT_THAT(status.ToString(),
                testing::AllOf(HasSubstr(At(1)), HasSubstr(absl::StrCat(call, " cuts in a row")),
                               HasSubstr(disk_.LockHolders(At(1, "/manifest")))));
  }
}

TEST_F(CutFoldersTest, AnUncommittedCutThatIsPinnedStays) {
  disk_.Put(FolderOfCut(kRun, CutName(1, 1)) + "/manifest", "x");
  auto pin = PinCut(FolderOfCut(kRun, CutName(1, 1)), &disk_);
  ASSERT_TRUE(pin.ok()) << pin.status();
  ASSERT_TRUE(cuts_.RemoveUncommitted(Log()).ok());
  EXPECT_TRUE(disk_.Exists("/runs/a/checkpoints/cut_0001_000001/manifest"));
  pin->reset();
  ASSERT_TRUE(cuts_.RemoveUncommitted(Log()).ok());
  EXPECT_FALSE(disk_.Exists("/runs/a/checkpoints/cut_0001_000001"));
}

TEST_F(CutFoldersTest, ACutThatIsRemovedLosesItsManifestFirst) {
  Commit(1);
  Commit(2);
  disk_.SetHook([this](const std::string& operation) {
    return operation == "remove " + At(1) ? absl::DataLossError("killed here") : absl::OkStatus();
  });
  EXPECT_FALSE(cuts_.RemoveOld(Log(), /*keep=*/1).ok());
  EXPECT_TRUE(disk_.Exists(At(1, "/rows.bin")));
  EXPECT_FALSE(disk_.Exists(At(1, "/manifest")));
}

}  // namespace
}  // namespace satrap
