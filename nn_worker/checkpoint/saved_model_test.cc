#include "nn_worker/checkpoint/saved_model.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/cut_pin.h"
#include "common/checkpoint/manifest.h"
#include "common/file/testing/forwarding_file_system.h"
#include "common/numeric/crc32c.h"
#include "gtest/gtest.h"
#include "nn_worker/graph/saved/dense_checkpoint.h"

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
  // If the damaged cut is the job's model, the user must replace it, so the message does not
  // suggest another cut.
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

// A disk with a run that is still training the model. Before each of the next `removals_left` Opens
// of the newest cut's dense network, that cut is removed and `latest` names the next one. With
// `has_locks` the disk has the locks of the machine's disk; otherwise it has none.
class DiskOfTrainingRun final : public ForwardingFileSystem {
 public:
  DiskOfTrainingRun(std::string checkpoints, bool has_locks)
      : checkpoints_(std::move(checkpoints)), has_locks_(has_locks) {}

  absl::StatusOr<std::unique_ptr<ReadableFile>> Open(const std::string& path) override {
    const std::string newest = fs::canonical(checkpoints_ + "/latest").string();
    if (path == newest + "/dense.bin" && removals_left > 0) RemoveNewest(newest);
    return disk()->Open(path);
  }
  absl::StatusOr<std::unique_ptr<FileLock>> TryLock(const std::string& path,
                                                    LockKind kind) override {
    if (has_locks_) return disk()->TryLock(path, kind);
    return absl::UnimplementedError("no locks");
  }

  int removals_left = 0;

 private:
  void RemoveNewest(const std::string& newest) {
    --removals_left;
    // Locks the cut, as a coordinator does before it removes a cut.
    const auto lock = LockToRemoveCut(newest, this);
    if (!lock.ok()) return;
    std::string next = fs::path(newest).filename().string();
    ++next.back();
    fs::remove(checkpoints_ + "/latest");
    fs::create_directory_symlink(next, checkpoints_ + "/latest");
    fs::remove_all(newest);
  }

  const std::string checkpoints_;
  const bool has_locks_;
};

class VanishingModelTest : public SavedModelTest {
 protected:
  VanishingModelTest() {
    for (int cut = 1; cut <= 8; ++cut) {
      WriteCut(absl::StrCat("cut_0001_00000", cut), DenseOf(cut));
    }
    Link("latest", "cut_0001_000001");
  }
  static std::string DenseOf(int cut) {
    return EncodeArrays({{"b", 1, 1, {static_cast<float>(cut)}}});
  }
  std::string Checkpoints() const { return run_ + "/checkpoints"; }
};

TEST_F(VanishingModelTest, APinnedCutIsReadAlthoughItsRunGoesOn) {
  DiskOfTrainingRun disk(Checkpoints(), /*has_locks=*/true);
  disk.removals_left = 1;
  absl::StatusOr<StartModel> model = ReadStartModel("", run_, &disk);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->dense, DenseOf(1));
  EXPECT_FALSE(LockToRemoveCut(model->directory, &disk).ok()) << "pinned until it is loaded";
  const std::string directory = model->directory;
  model = StartModel();
  EXPECT_TRUE(LockToRemoveCut(directory, &disk).ok());
}

TEST_F(VanishingModelTest, WhereLocksDoNotReachTheNewestIsReadInThePlaceOfOneThatVanishes) {
  DiskOfTrainingRun disk(Checkpoints(), /*has_locks=*/false);
  disk.removals_left = 2;
  const absl::StatusOr<StartModel> model = ReadStartModel("", run_, &disk);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->dense, DenseOf(3));
  disk.removals_left = 100;
  EXPECT_FALSE(ReadStartModel("", run_, &disk).ok()) << "three times, and not for ever";
}

TEST_F(VanishingModelTest, ACutThatVanishesWhileTablesAreLoadedIsReplacedByTheNewest) {
  DiskOfTrainingRun disk(Checkpoints(), /*has_locks=*/false);
  absl::StatusOr<StartModel> model = ReadStartModel("", run_, &disk);
  ASSERT_TRUE(model.ok()) << model.status();
  std::vector<std::string> loaded;
  const absl::Status status = LoadOrLookAgain(
      &*model,
      [&](const StartModel& found) -> absl::Status {
        loaded.push_back(found.directory);
        if (loaded.size() == 3) return absl::OkStatus();
        disk.removals_left = 1;
        return ReadDense(found.directory, &disk).status();  // as if it were a file of rows
      },
      &disk);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(loaded.size(), 3u);
  EXPECT_EQ(model->dense, DenseOf(3));
  EXPECT_EQ(loaded.back(), model->directory);
}

TEST_F(VanishingModelTest, AnErrorOfACutThatIsThereIsNotTriedAgain) {
  DiskOfTrainingRun disk(Checkpoints(), /*has_locks=*/false);
  absl::StatusOr<StartModel> model = ReadStartModel("", run_, &disk);
  ASSERT_TRUE(model.ok()) << model.status();
  int loads = 0;
  const auto damaged = [&loads](const StartModel&) {
    ++loads;
    return absl::DataLossError("damaged");
  };
  EXPECT_EQ(LoadOrLookAgain(&*model, damaged, &disk).code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(loads, 1);
}

TEST_F(VanishingModelTest, ACutThatWasNamedByItselfIsNotReplacedAndTheErrorNamesItsRun) {
  const std::string cut = Checkpoints() + "/cut_0001_000001";
  fs::remove_all(cut);
  const absl::Status status = ReadStartModel("", cut).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  const std::string run = fs::path(run_).lexically_normal().string();
  EXPECT_NE(status.message().find("name the run: " + run), absl::string_view::npos) << status;
}

}  // namespace
}  // namespace satrap
