#include "deploy/launcher/process/cut_check.h"

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/manifest.h"
#include "common/checkpoint/run_log.h"
#include "common/file/file_system.h"
#include "deploy/launcher/testing/logged_run.h"
#include "gmock/gmock.h"

namespace satrap {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kCut[] = "cut_0001_000002";

// A run with one committed cut of two files.
class CutCheckTest : public LoggedRunTest {
 protected:
  void SetUp() override {
    LoggedRunTest::SetUp();
    folder_ = FolderOfCut(dir_, kCut);
    fs::create_directories(folder_);
    manifest_.set_version(kManifestVersion);
    manifest_.set_generation(1);
    manifest_.set_cut(2);
    manifest_.set_step(70);
    SavedFile* rows = manifest_.add_table_files();
    rows->set_name("a.rows");
    rows->set_bytes(4);
    std::ofstream(folder_ + "/a.rows") << "rows";
    manifest_.set_dense_file("dense.bin");
    manifest_.set_dense_bytes(5);
    std::ofstream(folder_ + "/dense.bin") << "dense";
    ASSERT_TRUE(WriteManifest(folder_, manifest_).ok());
    uint32_t crc32c = 0;
    ASSERT_TRUE(ReadManifest(folder_, DiskFileSystem(), &crc32c).ok());
    Append(absl::StrCat("cut { generation: 1 cut: '", kCut, "' step: 70 manifest_crc32c: ", crc32c,
                        " }"));
  }

  std::string Problem() const {
    const auto log = RunLog::Open(dir_, DiskFileSystem());
    EXPECT_TRUE(log.ok());
    return log.ok() ? CutProblem(*log, dir_, kCut) : "";
  }

  std::string folder_;
  CheckpointManifest manifest_;
};

TEST_F(CutCheckTest, AWholeCutHasNoProblem) { EXPECT_EQ(Problem(), ""); }

TEST_F(CutCheckTest, AFolderThatIsGoneIsMissing) {
  fs::remove_all(folder_);
  EXPECT_EQ(Problem(), "missing: " + folder_);
}

TEST_F(CutCheckTest, AFileThatIsGoneOrHasAnotherSizeIsNamed) {
  std::ofstream(folder_ + "/a.rows") << "rows and more";
  EXPECT_EQ(Problem(), "damaged: " + folder_ + "/a.rows has 13 bytes, but was written with 4");
  std::ofstream(folder_ + "/a.rows") << "rows";
  EXPECT_EQ(Problem(), "");
  fs::remove(folder_ + "/dense.bin");
  EXPECT_THAT(Problem(), HasSubstr(folder_ + "/dense.bin: No such file"));
}

TEST_F(CutCheckTest, AManifestThatIsGoneOrDamagedIsNamed) {
  std::ofstream(folder_ + "/manifest", std::ios::app) << "x";
  EXPECT_THAT(Problem(), StartsWith("damaged: " + folder_ + "/manifest"));
  fs::remove(folder_ + "/manifest");
  EXPECT_THAT(Problem(), HasSubstr("has no manifest"));
}

TEST_F(CutCheckTest, AnotherRunsCutOfTheSameNameAndStepIsFound) {
  manifest_.mutable_position()->set_samples(1);
  ASSERT_TRUE(WriteManifest(folder_, manifest_).ok());
  EXPECT_THAT(Problem(), HasSubstr("is not the cut that the run's log names"));
}

TEST_F(CutCheckTest, KnowsAllFilesOfACut) {
  const std::vector<FileOfCut> files = FilesOfCut("DIR", manifest_);
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(files[0].path, "DIR/a.rows");
  EXPECT_EQ(files[1].path, "DIR/dense.bin");
  EXPECT_EQ(files[1].bytes, 5u);
  manifest_.clear_dense_file();
  EXPECT_EQ(FilesOfCut("DIR", manifest_).size(), 1u);
}

}  // namespace
}  // namespace satrap
