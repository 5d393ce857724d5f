#include <unistd.h>

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
#include "common/testing/temp_dir.h"
#include "embedding_ps/checkpoint/load_tables.h"
#include "embedding_ps/checkpoint/row_file.h"
#include "embedding_ps/checkpoint/testing/saved_tables_fixture.h"
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

std::unique_ptr<EmbeddingTable> NewTable(const TableConfig& config = Config(),
                                         const EmbeddingTable::Options& options = {}) {
  auto table = EmbeddingTable::Create(config, options);
  CHECK_OK(table.status());
  return *std::move(table);
}

class SavedTablesTest : public testing::Test {
 protected:
  SavedTablesTest() {
    SplitMix64 random(1);
    for (int i = 0; i < 40000; ++i) keys_.push_back(random.Next());
    keys_.push_back(0);
    keys_.push_back(~uint64_t{0});
  }

  // Trains the keys of each of `num_ps` PSs in a separate table, and saves all these tables.
  void Save(int num_ps, int updates = 1) {
    std::vector<SavedFile> files;
    const auto any = NewTable();
    for (int ps = 0; ps < num_ps; ++ps) {
      const auto table = NewTable(Config(), OptionsOfPs(ps, num_ps));
      std::vector<uint64_t> keys = OwnedKeys(ps, num_ps);
      std::vector<float> gradients;
      for (const uint64_t key : keys) {
        for (int d = 0; d < 3; ++d) gradients.push_back(static_cast<float>(key % 11) + d - 4);
      }
      for (int i = 0; i < updates; ++i) table->Update(keys, gradients, {}, StepContext());
      const CutWriter::Result saved = SaveNow({table.get()}, directory_);
      CHECK_OK(saved.status);
      files.insert(files.end(), saved.files.begin(), saved.files.end());
    }
    manifest_ = ManifestOf({any.get()}, files);
    CHECK_OK(WriteManifest(directory_, manifest_));
    file_ = directory_ + "/" + manifest_.table_files(0).name();
  }
  std::vector<uint64_t> OwnedKeys(int ps, int num_ps) const {
    std::vector<uint64_t> owned;
    for (const uint64_t key : keys_) {
      if (PsOfPartition(PartitionOf(key), num_ps) == ps) owned.push_back(key);
    }
    return owned;
  }
  // The rows of the model, with values and state, after loading it on `num_ps` PSs.
  TableContent LoadOn(int num_ps, int shards = 16) {
    TableContent all;
    for (int ps = 0; ps < num_ps; ++ps) {
      const auto table = NewTable(Config(), OptionsOfPs(ps, num_ps, shards));
      CHECK_OK(LoadNow({table.get()}, directory_).status);
      const TableContent content = ContentOf(*table);
      EXPECT_EQ(table->rows(), static_cast<int64_t>(content.size()));
      for (const auto& [key, row] : content) EXPECT_EQ(PsOfPartition(PartitionOf(key), num_ps), ps);
      all.insert(content.begin(), content.end());
    }
    return all;
  }
  // Loads into a table that has 3 rows. If the load fails, the table must be empty or still have
  // these rows.
  absl::Status LoadStatus(const TableConfig& config = Config()) {
    const auto table = NewTable(config);
    table->CreateRows({1, 2, 3});
    const LoadResult loaded = LoadNow({table.get()}, directory_);
    if (!loaded.status.ok()) {
      EXPECT_EQ(table->rows(), loaded.replaced ? 0 : 3);
    }
    return loaded.status;
  }

  const TempDir temp_;
  const std::string directory_ = temp_.path();
  std::string file_;
  CheckpointManifest manifest_;
  std::vector<uint64_t> keys_;
};

TEST_F(SavedTablesTest, LoadOnAnyNumberOfEmbeddingPss) {
  Save(3);
  const auto rows = LoadOn(1);
  EXPECT_EQ(rows.size(), keys_.size());
  EXPECT_NE(rows.at(keys_[0]).back(), 0) << "the optimizer's state is there";
  EXPECT_EQ(LoadOn(3), rows);
  EXPECT_EQ(LoadOn(5), rows);
  EXPECT_EQ(LoadOn(2, /*shards=*/1), rows);
  EXPECT_EQ(LoadOn(7, /*shards=*/700), rows);
}

TEST_F(SavedTablesTest, ALoadedTableGoesOnAsTheSavedOne) {
  const auto saved = NewTable();
  std::vector<float> gradients(keys_.size() * 3, 1);
  saved->Update(keys_, gradients, {}, StepContext());
  const CutWriter::Result result = SaveNow({saved.get()}, directory_);
  CHECK_OK(result.status);
  CHECK_OK(WriteManifest(directory_, ManifestOf({saved.get()}, result.files)));
  EmbeddingTable::Options options;
  options.shards = 3;
  const auto loaded = NewTable(Config(), options);
  loaded->CreateRows({77, 78});  // rows that the model lacks must vanish
  CHECK_OK(LoadNow({loaded.get()}, directory_).status);
  // Both tables update the old rows, and also new ones. There are so many new rows that every shard
  // grows.
  std::vector<uint64_t> more = keys_;
  for (uint64_t i = 0; i < 40000; ++i) more.push_back(KeyOf(i, 5));
  gradients.resize(more.size() * 3, 2);
  for (EmbeddingTable* table : {saved.get(), loaded.get()}) {
    table->Update(more, gradients, {}, StepContext());
  }
  EXPECT_EQ(ContentOf(*loaded), ContentOf(*saved));
}

TEST_F(SavedTablesTest, TheDigestDoesNotDependOnTheNumberOfEmbeddingPss) {
  Save(1);
  const uint64_t digest = ModelDigest(manifest_);
  const size_t files = static_cast<size_t>(manifest_.table_files_size());
  Save(3);
  EXPECT_EQ(ModelDigest(manifest_), digest);
  EXPECT_NE(static_cast<size_t>(manifest_.table_files_size()), files);
  Save(1, /*updates=*/2);
  EXPECT_NE(ModelDigest(manifest_), digest);
}

TEST_F(SavedTablesTest, AManifestThatLacksAFileIsDataLoss) {
  Save(1);
  manifest_.mutable_table_files()->DeleteSubrange(3, 1);
  CHECK_OK(WriteManifest(directory_, manifest_));
  const absl::Status status = LoadStatus();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_NE(status.message().find("manifest"), absl::string_view::npos) << status;
}

TEST_F(SavedTablesTest, FilesOfTheSamePartitionsAreDataLoss) {
  Save(1);
  CheckpointManifest twice = manifest_;
  *twice.add_table_files() = manifest_.table_files(0);
  twice.mutable_tables(0)->set_rows(manifest_.tables(0).rows() + manifest_.table_files(0).rows());
  CHECK_OK(WriteManifest(directory_, twice));
  EXPECT_EQ(LoadStatus().code(), absl::StatusCode::kDataLoss);
  // Combines the files of two saves by different numbers of PSs, so that ranges overlap but begin
  // at different partitions.
  Save(3);
  CheckpointManifest overlapping = manifest_;
  Save(1);
  for (const SavedFile& file : manifest_.table_files()) {
    if (file.first_partition() == 1280) *overlapping.add_table_files() = file;
  }
  uint64_t rows = 0;
  for (const SavedFile& file : overlapping.table_files()) rows += file.rows();
  overlapping.mutable_tables(0)->set_rows(rows);
  CHECK_OK(WriteManifest(directory_, overlapping));
  EXPECT_EQ(LoadStatus().code(), absl::StatusCode::kDataLoss);
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
  ASSERT_TRUE(SaveNow({table.get()}, directory_).status.ok());
  const auto file = ReadWholeFile(directory_ + "/table_0_partitions_3328_3583.rows");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(absl::BytesToHexString(*file),
            "53415452524f573300000000000d0000"
            "ff0d000002000000638a1d521b33588e"
            "29ac7e24000000000000000000000000"
            "00000000000000000000000000000000"
            "010000005c676f781cddb60f21d5c4de"
            "cdcccc3e00008040"
            "000000007ac85c620100000000000000");
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

// Damages the row count of the first block. Nothing may be allocated for rows that cannot exist.
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

// The file is intact and has the same keys. Only the manifest shows that it belongs to another
// save.
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
  const absl::Status status = SaveNow({table.get()}, directory_ + "/nowhere").status;
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_NE(status.message().find("nowhere"), absl::string_view::npos) << status;
}

}  // namespace
}  // namespace satrap
