#include "nn_worker/checkpoint/model_store.h"

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
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
    store_ =
        std::make_unique<ModelStore>(job, Envelope(), std::vector<rpc::Channel*>{&ps0_, &ps1_});
  }

  static MetricValues Valid(double auc) {
    MetricValues values;
    values.set_auc(auc);
    return values;
  }

  const std::string run_;
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
