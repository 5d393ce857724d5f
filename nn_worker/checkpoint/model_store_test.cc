#include "nn_worker/checkpoint/model_store.h"

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/checkpoint/file_system.h"
#include "common/checkpoint/manifest.h"
#include "common/rpc/control_methods.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

namespace fs = std::filesystem;

// An embedding PS that saves one file and remembers what it was told to load.
class FakePs final : public rpc::Channel {
 public:
  explicit FakePs(int index) : index_(index) {}

  void Call(const rpc::Method& method, rpc::Message request, int64_t, rpc::Callback done) override {
    if (fails) {
      done(absl::ResourceExhaustedError("disk full"));
      return;
    }
    rpc::Message answer;
    if (method == rpc::kSaveTables) {
      SaveTablesRequest save;
      EXPECT_TRUE(save.ParseFromString(request.header));
      const std::string name = absl::StrCat("rows_", index_);
      std::ofstream(save.directory() + "/" + name) << "rows";
      SaveTablesAnswer saved;
      saved.add_files()->set_name(name);
      saved.mutable_files(0)->set_table(4);
      saved.mutable_files(0)->set_rows(10);
      answer.header = saved.SerializeAsString();
    } else if (method == rpc::kLoadTables) {
      LoadTablesRequest load;
      EXPECT_TRUE(load.ParseFromString(request.header));
      loaded.push_back(load.directory());
    } else {
      TableStatsAnswer stats;
      stats.add_tables()->set_name("t");
      stats.mutable_tables(0)->set_rows(5);
      stats.mutable_tables(0)->set_bytes(100);
      answer.header = stats.SerializeAsString();
    }
    done(std::move(answer));
  }

  bool fails = false;
  std::vector<std::string> loaded;

 private:
  const int index_;
};

// The disk, with a list of what was done to it. Paths are named from the run's folder.
class RecordingFileSystem final : public FileSystem {
 public:
  explicit RecordingFileSystem(std::string run) : run_(std::move(run)) {}

  absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) override {
    auto file = DiskFileSystem()->Create(path);
    if (!file.ok()) return file.status();
    Record("create", path);
    return std::make_unique<File>(this, path, *std::move(file));
  }
  absl::StatusOr<std::unique_ptr<ReadableFile>> Open(const std::string& path) override {
    return DiskFileSystem()->Open(path);
  }
  absl::Status HardLink(const std::string& from, const std::string& to) override {
    return DiskFileSystem()->HardLink(from, to);
  }
  absl::Status Rename(const std::string& from, const std::string& to) override {
    Record("rename to", to);
    return DiskFileSystem()->Rename(from, to);
  }
  absl::Status CreateLink(const std::string& target, const std::string& path) override {
    Record("link", path);
    return DiskFileSystem()->CreateLink(target, path);
  }
  absl::Status CreateFolders(const std::string& path) override {
    Record("create", path);
    return DiskFileSystem()->CreateFolders(path);
  }
  absl::Status Remove(const std::string& path) override {
    if (fs::exists(fs::symlink_status(path))) Record("remove", path);
    return DiskFileSystem()->Remove(path);
  }
  absl::StatusOr<std::vector<std::string>> List(const std::string& folder) override {
    return DiskFileSystem()->List(folder);
  }
  absl::Status SyncFolder(const std::string& folder) override {
    Record("sync", folder);
    if (folder == failing_folder) return absl::DataLossError("cannot sync");
    return DiskFileSystem()->SyncFolder(folder);
  }

  std::vector<std::string> done;
  std::string failing_folder;

 private:
  class File final : public WritableFile {
   public:
    File(RecordingFileSystem* recorder, std::string path, std::unique_ptr<WritableFile> file)
        : recorder_(recorder), path_(std::move(path)), file_(std::move(file)) {}
    absl::Status Append(absl::string_view bytes) override { return file_->Append(bytes); }
    absl::Status Sync() override {
      recorder_->Record("sync", path_);
      return file_->Sync();
    }

   private:
    RecordingFileSystem* const recorder_;
    const std::string path_;
    const std::unique_ptr<WritableFile> file_;
  };

  void Record(const std::string& what, const std::string& path) {
    const std::string name = fs::path(path).lexically_relative(run_).lexically_normal().string();
    done.push_back(absl::StrCat(what, " ", absl::StripSuffix(name, "/")));
  }

  const std::string run_;
};

class ModelStoreTest : public testing::Test {
 protected:
  ModelStoreTest()
      : run_(testing::TempDir() + "/" +
             testing::UnitTest::GetInstance()->current_test_info()->name()) {
    fs::remove_all(run_);
    fs::create_directories(run_);
    JobConfig job;
    job.set_run_dir(run_);
    job.set_name("job");
    job.add_tables()->set_name("t");
    job.mutable_tables(0)->set_id(4);
    store_ = std::make_unique<ModelStore>(job, Envelope(), std::vector<rpc::Channel*>{&ps0_, &ps1_},
                                          &file_system_);
  }

  static MetricValues Valid(double auc) {
    MetricValues values;
    values.set_auc(auc);
    return values;
  }

  const std::string run_;
  RecordingFileSystem file_system_{run_};
  FakePs ps0_{0};
  FakePs ps1_{1};
  std::unique_ptr<ModelStore> store_;
};

TEST_F(ModelStoreTest, WhatWasSavedIsFoundAndLoaded) {
  ASSERT_TRUE(store_->Save(12, Valid(.7), "dense bytes").ok());
  const auto model = FindSavedModel(run_);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_TRUE(fs::equivalent(*model, store_->last_saved()));
  EXPECT_EQ(*FindSavedModel(*model), *model);

  const auto manifest = ReadManifest(*model);
  ASSERT_TRUE(manifest.ok());
  EXPECT_EQ(manifest->step(), 12u);
  EXPECT_EQ(manifest->table_files_size(), 2);
  EXPECT_EQ(manifest->tables(0).rows(), 20u);
  EXPECT_EQ(manifest->valid().auc(), .7);

  const auto dense = store_->Load(*model);
  ASSERT_TRUE(dense.ok()) << dense.status();
  EXPECT_EQ(*dense, "dense bytes");
  EXPECT_EQ(ps0_.loaded, std::vector<std::string>{*model});
  EXPECT_EQ(ps1_.loaded, std::vector<std::string>{*model});
}

TEST_F(ModelStoreTest, OnlyTheNewestModelIsKept) {
  ASSERT_TRUE(store_->Save(1, Valid(.6), "a").ok());
  const std::string first = store_->last_saved();
  ASSERT_TRUE(store_->Save(2, Valid(.7), "b").ok());
  EXPECT_FALSE(fs::exists(first));
  EXPECT_TRUE(fs::equivalent(*FindSavedModel(run_), store_->last_saved()));
}

TEST_F(ModelStoreTest, TheOlderModelIsRemovedOnlyWhenTheNewOneAndTheLinkToItAreDurable) {
  ASSERT_TRUE(store_->Save(1, Valid(.6), "a").ok());
  file_system_.done.clear();
  ASSERT_TRUE(store_->Save(2, Valid(.7), "b").ok());
  const std::string folder = "models/step_0000000002";
  EXPECT_EQ(file_system_.done, (std::vector<std::string>{
                                   "create " + folder,
                                   "create " + folder + "/dense.bin.partial",
                                   "sync " + folder + "/dense.bin.partial",
                                   "rename to " + folder + "/dense.bin",
                                   "sync " + folder,
                                   "create " + folder + "/manifest.partial",
                                   "sync " + folder + "/manifest.partial",
                                   "rename to " + folder + "/manifest",
                                   "sync " + folder,
                                   "sync models",
                                   "sync .",
                                   "link models/best.new",
                                   "rename to models/best",
                                   "sync models",
                                   "remove models/step_0000000001",
                               }));
}

TEST_F(ModelStoreTest, NothingIsRemovedIfALinkCannotBeMadeDurable) {
  ASSERT_TRUE(store_->Save(1, Valid(.6), "a").ok());
  file_system_.failing_folder = run_ + "/models";
  EXPECT_EQ(store_->Save(2, Valid(.7), "b").code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(*store_->Load(*FindSavedModel(run_)), "a");
  EXPECT_EQ(fs::path(store_->last_saved()).filename(), "step_0000000001");
}

TEST_F(ModelStoreTest, ASaveThatFailsLeavesTheModelBefore) {
  ASSERT_TRUE(store_->Save(1, Valid(.6), "a").ok());
  ps1_.fails = true;
  const absl::Status status = store_->Save(2, Valid(.7), "b");
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(status.message().find("embedding_ps 1"), std::string::npos);
  EXPECT_EQ(status.message().find("saving the model: "), 0u) << status;
  ps1_.fails = false;
  EXPECT_EQ(*store_->Load(*FindSavedModel(run_)), "a");
}

TEST_F(ModelStoreTest, AFolderWithoutAManifestIsNoModel) {
  fs::create_directories(run_ + "/models/step_0000000009");
  fs::create_directory_symlink("step_0000000009", run_ + "/models/best");
  EXPECT_EQ(FindSavedModel(run_).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(ModelStoreTest, ADamagedDenseFileIsRefusedBeforeAnythingIsLoaded) {
  ASSERT_TRUE(store_->Save(1, Valid(.6), "abc").ok());
  std::ofstream(store_->last_saved() + "/dense.bin") << "abd";
  EXPECT_EQ(store_->Load(store_->last_saved()).status().code(), absl::StatusCode::kDataLoss);
  fs::remove(store_->last_saved() + "/dense.bin");
  EXPECT_EQ(store_->Load(store_->last_saved()).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_TRUE(ps0_.loaded.empty());
}

TEST_F(ModelStoreTest, StatsAreSummedOverPss) {
  const auto stats = store_->Stats();
  ASSERT_TRUE(stats.ok());
  ASSERT_EQ(stats->size(), 1u);
  EXPECT_EQ((*stats)[0].rows(), 10u);
  EXPECT_EQ((*stats)[0].bytes(), 200u);
}

}  // namespace
}  // namespace satrap
