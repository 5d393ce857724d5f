#include "embedding_ps/checkpoint/row_form.h"

#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>

#include "common/base/check.h"
#include "common/checkpoint/manifest.h"
#include "common/numeric/crc32c.h"
#include "common/testing/temp_dir.h"
#include "embedding_ps/checkpoint/load_tables.h"
#include "embedding_ps/checkpoint/row_file.h"
#include "embedding_ps/checkpoint/testing/saved_tables_fixture.h"
#include "embedding_ps/optimizer/row_step.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using Row = std::vector<float>;

constexpr size_t kFingerprintAt = 24, kCrcAt = 32;  // of a file's header
constexpr int64_t kPeriod = int64_t{1} << 24;

// A table with one segment of dim 2.
TableConfig Config() {
  TableConfig config;
  config.set_name("users");
  config.set_id(3);
  SegmentConfig* const segment = config.add_segments();
  segment->set_name("embedding");
  segment->set_dim(2);
  return config;
}
TableConfig SgdL1Config() {
  TableConfig config = Config();
  config.mutable_segments(0)->mutable_optimizer()->mutable_sgd_l1();
  return config;
}

std::unique_ptr<EmbeddingTable> NewTable(const TableConfig& config) {
  EmbeddingTable::Options options;
  options.shards = 1;
  auto table = EmbeddingTable::Create(config, options);
  CHECK_OK(table.status());
  return *std::move(table);
}

// Writes cuts as an older build did, and loads them.
class FirstFormTest : public testing::Test {
 protected:
  // Saves `row` as row 1 of a table of `config`, in the first form, after `steps` steps. This build
  // cannot make such a table. So a table of `stand_in` is saved, whose rows are as long as rows of
  // `config` in the first form, and its fingerprint is replaced.
  void Save(const TableConfig& config, TableConfig stand_in, const Row& row, uint64_t steps) {
    const auto table = NewTable(stand_in);
    table->WriteRows({1}, row);
    CutWriter::Result saved = SaveNow({table.get()}, directory_);
    CHECK_OK(saved.status);
    CHECK(saved.files.size() == 1);
    const uint64_t fingerprint = TableFingerprint(config, RowForm::kFirst);
    SetFingerprint(fingerprint, &saved.files[0]);
    CheckpointManifest manifest = ManifestOf({table.get()}, saved.files);
    manifest.mutable_tables(0)->set_fingerprint(fingerprint);
    manifest.set_step(steps);
    CHECK_OK(WriteManifest(directory_, manifest));
  }

  Row Load(const TableConfig& config,
           const absl::optional<WarmStartConfig>& warm_start = absl::nullopt) {
    const auto table = NewTable(config);
    CHECK_OK(LoadNow({table.get()}, directory_, DiskFileSystem(), warm_start).status);
    Row row(table->layout().num_floats());
    table->ReadRows({1}, absl::MakeSpan(row));
    return row;
  }

  const TempDir temp_;
  const std::string directory_ = temp_.path();

 private:
  void SetFingerprint(uint64_t fingerprint, SavedFile* file) {
    const std::string path = directory_ + "/" + file->name();
    std::ifstream in(path, std::ios::binary);
    std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    std::memcpy(&bytes[kFingerprintAt], &fingerprint, sizeof(fingerprint));
    const uint32_t crc = Crc32c(bytes.substr(0, kCrcAt));
    std::memcpy(&bytes[kCrcAt], &crc, sizeof(crc));
    std::ofstream(path, std::ios::binary) << bytes;
    file->set_crc32c(Crc32c(bytes));
  }
};

TEST_F(FirstFormTest, WhatAWeightOwesIsMadeOfWhatItHasPaid) {
  TableConfig stand_in = Config();
  stand_in.mutable_segments(0)->mutable_optimizer()->mutable_adadelta();  // 4 floats of state
  // The row: 2 values, then what each weight has paid (-5, 4), what each owes in all (5), and the
  // last step. The weight above 0 has paid everything, the other one 4 of the 5.
  Save(SgdL1Config(), stand_in, {3, -2, -5, 4, 5, 100}, 200);
  EXPECT_EQ(Load(SgdL1Config()), (Row{3, -2, 0, 9, 10, 1, 100}));
  const Row warm = Load(SgdL1Config(), WarmStartConfig());
  EXPECT_EQ(Row(warm.begin(), warm.end() - 1), (Row{3, -2, 0, 9, 10, 1}));
  EXPECT_EQ(StepsPassed(warm.back(), 0), 101) << "step 99 was the last of 200";
}

TEST_F(FirstFormTest, LastStepsAreTheNewestThatTheyCanBe) {
  TableConfig config = Config();
  config.mutable_segments(0)->mutable_optimizer()->mutable_adadelta();
  config.set_semantics(TableConfig::GLOBAL);
  const auto last_step = [&](float encoded, uint64_t steps) {
    Save(config, config, {1, 2, 3, 4, 5, 6, encoded}, steps);
    const Row row = Load(config);
    EXPECT_EQ(Row(row.begin(), row.end() - 1), (Row{1, 2, 3, 4, 5, 6}));
    return row.back();
  };
  EXPECT_EQ(last_step(0, 3 * kPeriod), 0) << "none";
  EXPECT_EQ(last_step(7, 1000), 7);
  EXPECT_EQ(last_step(7, 3 * kPeriod + 1000), EncodedStep(3 * kPeriod + 6));
  EXPECT_EQ(last_step(2000, 3 * kPeriod + 1000), EncodedStep(2 * kPeriod + 1999));
}

TEST_F(FirstFormTest, TheStepOfTheLastL2FollowsTheOptimizersState) {
  TableConfig config = SgdL1Config();
  config.mutable_segments(0)->set_l2_mode(SegmentConfig::TOUCHED);
  TableConfig stand_in = Config();
  stand_in.mutable_segments(0)->set_l2_mode(SegmentConfig::TOUCHED);
  stand_in.mutable_segments(0)->mutable_optimizer()->mutable_adadelta();
  Save(config, stand_in, {3, -2, -5, 4, 5, 100, 90}, kPeriod + 500);
  EXPECT_EQ(Load(config),
            (Row{3, -2, 0, 9, 10, 1, EncodedStep(kPeriod + 99), EncodedStep(kPeriod + 89)}));
}

TEST_F(FirstFormTest, ATableOfAnotherOptimizerRefusesIt) {
  TableConfig other = Config();
  other.mutable_segments(0)->mutable_optimizer()->mutable_adadelta();
  Save(SgdL1Config(), other, {3, -2, -5, 4, 5, 100}, 200);
  const auto table = NewTable(other);
  const absl::Status status = LoadNow({table.get()}, directory_).status;
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
}

}  // namespace
}  // namespace satrap
