#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>

#include "absl/strings/escaping.h"
#include "common/base/check.h"
#include "common/checkpoint/manifest.h"
#include "common/config/text_format.h"
#include "common/numeric/crc32c.h"
#include "common/numeric/hash.h"
#include "common/numeric/random.h"
#include "embedding_ps/checkpoint/load_tables.h"
#include "embedding_ps/checkpoint/save_tables.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

TableConfig Config(int dim = 3) {
  TableConfig config;
  config.set_name("ids");
  config.set_id(5);
  SegmentConfig* segment = config.add_segments();
  segment->set_name("embedding");
  segment->set_dim(dim);
  segment->mutable_optimizer()->mutable_adagrad();
  return config;
}

std::unique_ptr<EmbeddingTable> NewTable(const TableConfig& config = Config()) {
  auto table = EmbeddingTable::Create(config, {});
  CHECK_OK(table.status());
  return *std::move(table);
}

class SavedTablesTest : public testing::Test {
 protected:
  SavedTablesTest() {
    std::string pattern = testing::TempDir() + "saved_tables_test_XXXXXX";
    directory_ = mkdtemp(pattern.data());
    SplitMix64 random(1);
    for (int i = 0; i < 40000; ++i) keys_.push_back(random.Next());
    keys_.push_back(0);
    keys_.push_back(~uint64_t{0});
  }

  // Trains the keys of each of `num_ps` PSs into a table of its own and saves them all.
  void Save(int num_ps, int updates = 1) {
    CheckpointManifest manifest;
    manifest.set_version(kManifestVersion);
    SavedTable* saved = manifest.add_tables();
    saved->set_id(5);
    saved->set_fingerprint(TableFingerprint(Config()));
    for (int ps = 0; ps < num_ps; ++ps) {
      const auto table = NewTable();
      std::vector<uint64_t> keys = OwnedKeys(ps, num_ps);
      std::vector<float> gradients;
      for (const uint64_t key : keys) {
        for (int d = 0; d < 3; ++d) gradients.push_back(static_cast<float>(key % 11) + d - 4);
      }
      for (int i = 0; i < updates; ++i) table->Update(keys, gradients, {}, StepContext());
      const auto files = SaveTable(*table, ps, num_ps, directory_);
      CHECK_OK(files.status());
      for (const SavedFile& file : *files) *manifest.add_table_files() = file;
    }
    CHECK_OK(WriteManifest(directory_, manifest));
    file_ = directory_ + "/" + manifest.table_files(0).name();
  }
  std::vector<uint64_t> OwnedKeys(int ps, int num_ps) const {
    std::vector<uint64_t> owned;
    for (const uint64_t key : keys_) {
      if (PsOfPartition(PartitionOf(key), num_ps) == ps) owned.push_back(key);
    }
    return owned;
  }
  // All rows, values and state, of the model loaded on `num_ps` PSs.
  std::map<uint64_t, std::vector<float>> LoadOn(int num_ps) {
    std::map<uint64_t, std::vector<float>> all;
    for (int ps = 0; ps < num_ps; ++ps) {
      const auto table = NewTable();
      EmbeddingTable* tables[] = {table.get()};
      CHECK_OK(LoadTables(directory_, ps, num_ps, tables));
      const std::vector<uint64_t> keys = table->Keys(0, kNumPartitions - 1);
      const size_t floats = table->layout().num_floats();
      std::vector<float> rows(keys.size() * floats);
      table->ReadRows(keys, absl::MakeSpan(rows));
      for (size_t i = 0; i < keys.size(); ++i) {
        EXPECT_EQ(PsOfPartition(PartitionOf(keys[i]), num_ps), ps);
        all[keys[i]] =
            std::vector<float>(rows.begin() + i * floats, rows.begin() + (i + 1) * floats);
      }
    }
    return all;
  }
  absl::Status LoadStatus(const TableConfig& config = Config()) {
    const auto table = NewTable(config);
    EmbeddingTable* tables[] = {table.get()};
    return LoadTables(directory_, 0, 1, tables);
  }

  std::string directory_, file_;
  std::vector<uint64_t> keys_;
};

TEST_F(SavedTablesTest, LoadOnAnyNumberOfEmbeddingPss) {
  Save(3);
  const auto rows = LoadOn(1);
  EXPECT_EQ(rows.size(), keys_.size());
  EXPECT_NE(rows.at(keys_[0]).back(), 0) << "the optimizer's state is there";
  EXPECT_EQ(LoadOn(3), rows);
  EXPECT_EQ(LoadOn(5), rows);
}

// The worked example of docs/formats.md, "Saved rows".
TEST_F(SavedTablesTest, AFileHasTheBytesOfTheFormat) {
  TableConfig config;
  config.set_id(0);
  SegmentConfig* segment = config.add_segments();
  segment->set_name("linear");
  segment->set_dim(1);
  segment->mutable_initializer()->mutable_constant()->set_value(0.5f);
  segment->mutable_optimizer()->set_learning_rate(0.1f);
  segment->mutable_optimizer()->mutable_adagrad();
  const auto table = NewTable(config);
  const std::vector<uint64_t> keys = {KeyOf(42, Xxh64("C1"))};
  table->Update(keys, std::vector<float>{2}, {}, StepContext());
  ASSERT_TRUE(SaveTable(*table, 0, 1, directory_).ok());
  const auto file = ReadWholeFile(directory_ + "/table_0_partitions_3328_3583.rows");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(absl::BytesToHexString(*file),
            "53415452524f573200000000000d0000"
            "ff0d000002000000638a1d521b33588e"
            "010000000000000039b4bc0300000000"
            "00000000000000000000000000000000"
            "010000005c676f781cddb60f21d5c4de"
            "cdcccc3e00008040");
}

TEST_F(SavedTablesTest, AChangedByteIsDataLossNamingFileAndOffset) {
  Save(1);
  std::string content = *ReadWholeFile(file_);
  content[content.size() - 100] ^= 1;
  std::ofstream(file_, std::ios::binary) << content;
  const absl::Status status = LoadStatus();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_NE(status.message().find(file_), absl::string_view::npos) << status;
  EXPECT_NE(status.message().find("offset"), absl::string_view::npos) << status;
}

// The row count of the first block is damaged: nothing is allocated for rows that cannot be there.
TEST_F(SavedTablesTest, ADamagedRowCountIsDataLossBeforeAnythingIsAllocated) {
  Save(1);
  const std::string content = *ReadWholeFile(file_);
  for (int bit = 0; bit < 32; ++bit) {
    std::string damaged = content;
    damaged[kRowFileHeaderBytes + bit / 8] ^= static_cast<char>(1 << (bit % 8));
    std::ofstream(file_, std::ios::binary | std::ios::trunc) << damaged;
    EXPECT_EQ(LoadStatus().code(), absl::StatusCode::kDataLoss) << "bit " << bit;
  }
}

TEST_F(SavedTablesTest, TheChecksumOfABlockCoversItsRowCount) {
  Save(1);
  const std::string content = *ReadWholeFile(file_);
  uint32_t rows, crc;
  std::memcpy(&rows, content.data() + kRowFileHeaderBytes, sizeof(rows));
  std::memcpy(&crc, content.data() + kRowFileHeaderBytes + 4, sizeof(crc));
  const size_t row_bytes = sizeof(uint64_t) + 6 * sizeof(float);
  const absl::string_view count = absl::string_view(content).substr(kRowFileHeaderBytes, 4);
  const absl::string_view body =
      absl::string_view(content).substr(kRowFileHeaderBytes + 8, rows * row_bytes);
  EXPECT_EQ(crc, ExtendCrc32c(Crc32c(count), body));
}

// Intact and with the same keys: only the manifest shows that it belongs to another save.
TEST_F(SavedTablesTest, AFileOfAnotherSaveIsDataLoss) {
  Save(1, /*updates=*/2);
  const std::string other = *ReadWholeFile(file_);
  Save(1);
  ASSERT_EQ(ReadWholeFile(file_)->size(), other.size());
  EXPECT_TRUE(LoadStatus().ok());
  std::ofstream(file_, std::ios::binary) << other;
  const absl::Status status = LoadStatus();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_NE(status.message().find(file_), absl::string_view::npos) << status;
}

TEST_F(SavedTablesTest, ACutFileIsDataLoss) {
  Save(1);
  const std::string content = *ReadWholeFile(file_);
  for (const size_t size : {size_t{0}, size_t{30}, size_t{64}, size_t{70}, content.size() - 1}) {
    std::ofstream(file_, std::ios::binary | std::ios::trunc) << content.substr(0, size);
    EXPECT_EQ(LoadStatus().code(), absl::StatusCode::kDataLoss) << size;
  }
}

TEST_F(SavedTablesTest, AMissingFileIsDataLoss) {
  Save(1);
  unlink(file_.c_str());
  EXPECT_EQ(LoadStatus().code(), absl::StatusCode::kDataLoss);
}

TEST_F(SavedTablesTest, ATableOfAnotherLayoutIsRefused) {
  Save(1);
  EXPECT_EQ(LoadStatus(Config(4)).code(), absl::StatusCode::kFailedPrecondition);
  TableConfig adam = Config();
  adam.mutable_segments(0)->mutable_optimizer()->mutable_adam();
  EXPECT_EQ(LoadStatus(adam).code(), absl::StatusCode::kFailedPrecondition);
  TableConfig other_id = Config();
  other_id.set_id(6);
  EXPECT_EQ(LoadStatus(other_id).code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(SavedTablesTest, AFolderWithoutManifestIsNoModel) {
  EXPECT_EQ(LoadStatus().code(), absl::StatusCode::kNotFound);
}

TEST_F(SavedTablesTest, WhatCannotBeWrittenIsNamed) {
  const auto table = NewTable();
  const std::vector<uint64_t> keys = {1};
  table->Update(keys, std::vector<float>{1, 1, 1}, {}, StepContext());
  const auto files = SaveTable(*table, 0, 1, directory_ + "/nowhere");
  EXPECT_EQ(files.status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace satrap
