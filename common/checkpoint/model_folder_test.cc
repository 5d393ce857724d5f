#include "common/checkpoint/model_folder.h"

#include <filesystem>
#include <fstream>
#include <string>

#include "common/checkpoint/manifest.h"
#include "common/testing/temp_dir.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

namespace fs = std::filesystem;

class ModelFolderTest : public testing::Test {
 protected:
  ModelFolderTest() { fs::create_directories(run_ + "/checkpoints"); }

  std::string WriteCut(const std::string& name) {
    const std::string folder = run_ + "/checkpoints/" + name;
    fs::create_directories(folder);
    CheckpointManifest manifest;
    manifest.set_version(kManifestVersion);
    EXPECT_TRUE(WriteManifest(folder, manifest).ok());
    return fs::canonical(folder).string();
  }
  void Link(const std::string& name, const std::string& cut) {
    fs::create_directory_symlink(cut, run_ + "/checkpoints/" + name);
  }

  const TempDir temp_;
  const std::string run_ = temp_.path();
};

TEST_F(ModelFolderTest, ACutIsFoundByItsFolderAndByThatOfItsRun) {
  const std::string one = WriteCut("cut_0001_000001");
  const std::string two = WriteCut("cut_0001_000002");
  EXPECT_EQ(*FindSavedModel(one), one);
  Link("latest", "cut_0001_000002");
  EXPECT_EQ(*FindSavedModel(run_), two);
  EXPECT_EQ(*FindSavedModel(run_ + "/checkpoints"), two);
  Link("best", "cut_0001_000001");
  EXPECT_EQ(*FindSavedModel(run_), one);
  EXPECT_EQ(*FindSavedModel(run_ + "/checkpoints"), one);
  EXPECT_EQ(*FindSavedModel(run_ + "/checkpoints/latest"), two);
}

TEST_F(ModelFolderTest, WhereNoneIsTheErrorSaysWhatWasLookedFor) {
  WriteCut("cut_0001_000001");  // no link names it
  const absl::Status status = FindSavedModel(run_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  for (const char* part : {run_.c_str(), "manifest", "checkpoints/best", "checkpoints/latest"}) {
    EXPECT_NE(status.message().find(part), absl::string_view::npos) << status;
  }
}

TEST_F(ModelFolderTest, AFolderWithoutAManifestIsNoCut) {
  fs::create_directories(run_ + "/checkpoints/cut_0001_000009");
  Link("best", "cut_0001_000009");
  EXPECT_EQ(FindSavedModel(run_).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(ModelFolderTest, ADamagedBestCutIsNotPassedOver) {
  WriteCut("cut_0001_000001");
  WriteCut("cut_0001_000002");
  Link("best", "cut_0001_000001");
  Link("latest", "cut_0001_000002");
  std::ofstream(run_ + "/checkpoints/best/manifest") << "version: 3\n";
  EXPECT_EQ(FindSavedModel(run_).status().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace satrap
