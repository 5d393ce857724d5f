#include "nn_worker/checkpoint/saved_model.h"

#include <filesystem>
#include <fstream>
#include <string>

#include "common/checkpoint/manifest.h"
#include "common/numeric/crc32c.h"
#include "gtest/gtest.h"
#include "nn_worker/graph/dense_checkpoint.h"

namespace satrap {
namespace {

namespace fs = std::filesystem;

class SavedModelTest : public testing::Test {
 protected:
  SavedModelTest()
      : run_(testing::TempDir() + "/" +
             testing::UnitTest::GetInstance()->current_test_info()->name()) {
    fs::remove_all(run_);
    fs::create_directories(run_ + "/checkpoints");
  }

  std::string WriteCut(const std::string& name, const std::string& dense = "abc") {
    const std::string folder = run_ + "/checkpoints/" + name;
    fs::create_directories(folder);
    CheckpointManifest manifest;
    manifest.set_version(kManifestVersion);
    manifest.set_dense_file(kDenseFile);
    manifest.set_dense_bytes(dense.size());
    manifest.set_dense_crc32c(Crc32c(dense));
    std::ofstream(folder + "/dense.bin") << dense;
    EXPECT_TRUE(WriteManifest(folder, manifest).ok());
    return fs::canonical(folder).string();
  }
  void Link(const std::string& name, const std::string& cut) {
    fs::create_directory_symlink(cut, run_ + "/checkpoints/" + name);
  }

  const std::string run_;
};

TEST_F(SavedModelTest, ACutIsFoundByItsFolderAndByThatOfItsRun) {
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

TEST_F(SavedModelTest, WhereNoneIsTheErrorSaysWhatWasLookedFor) {
  WriteCut("cut_0001_000001");  // no link names it
  const absl::Status status = FindSavedModel(run_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  for (const char* part : {run_.c_str(), "manifest", "checkpoints/best", "checkpoints/latest"}) {
    EXPECT_NE(status.message().find(part), absl::string_view::npos) << status;
  }
}

TEST_F(SavedModelTest, AFolderWithoutAManifestIsNoCut) {
  fs::create_directories(run_ + "/checkpoints/cut_0001_000009");
  Link("best", "cut_0001_000009");
  EXPECT_EQ(FindSavedModel(run_).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(SavedModelTest, ADamagedBestCutIsNotPassedOver) {
  WriteCut("cut_0001_000001");
  WriteCut("cut_0001_000002");
  Link("best", "cut_0001_000001");
  Link("latest", "cut_0001_000002");
  std::ofstream(run_ + "/checkpoints/best/manifest") << "version: 3\n";
  EXPECT_EQ(FindSavedModel(run_).status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(SavedModelTest, ADenseNetworkThatIsMissingOrDamagedIsDataLoss) {
  const std::string cut = WriteCut("cut_0001_000001");
  EXPECT_EQ(*ReadDense(cut), "abc");
  std::ofstream(cut + "/dense.bin") << "abd";
  EXPECT_EQ(ReadDense(cut).status().code(), absl::StatusCode::kDataLoss);
  fs::remove(cut + "/dense.bin");
  EXPECT_EQ(ReadDense(cut).status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(SavedModelTest, ARunStartsWithItsCutAndElseWithTheModelThatTheJobNames) {
  const std::string one = EncodeArrays({{"b", 1, 2, {1, -2}}});
  const std::string two = EncodeArrays({{"b", 1, 2, {3, 4}}});
  const std::string cut = WriteCut("cut_0001_000001", one);
  const std::string other = WriteCut("cut_0001_000002", two);
  Link("best", "cut_0001_000002");
  EXPECT_EQ(ReadStartModel(cut, run_)->directory, cut);
  EXPECT_EQ(ReadStartModel(cut, run_)->dense, one);
  EXPECT_EQ(ReadStartModel("", run_)->directory, other);
  EXPECT_EQ(ReadStartModel("", run_)->dense, two);
  EXPECT_EQ(ReadStartModel("", "")->directory, "");
  EXPECT_EQ(ReadStartModel("", "")->dense, "");
}

TEST_F(SavedModelTest, ACutThatARunCannotStartWithIsNamedWithWhatToDo) {
  const std::string cut = WriteCut("cut_0001_000001", EncodeArrays({{"b", 1, 2, {1, -2}}}));
  std::ofstream(cut + "/dense.bin") << "abd";
  absl::Status status = ReadStartModel(cut, "").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_NE(status.message().find(cut + "/dense.bin is damaged"), absl::string_view::npos);
  EXPECT_NE(status.message().find("--from CUT"), absl::string_view::npos) << status;
  // As the job's model it is the user's to replace.
  status = ReadStartModel("", cut).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(status.message().find("--from CUT"), absl::string_view::npos) << status;
}

TEST_F(SavedModelTest, AStartsFileThatHoldsNoNetworkIsDataLossThatNamesIt) {
  const std::string cut = WriteCut("cut_0001_000001", "abc");
  const absl::Status status = ReadStartModel(cut, "").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_NE(status.message().find(cut + "/dense.bin: "), absl::string_view::npos) << status;
}

}  // namespace
}  // namespace satrap
