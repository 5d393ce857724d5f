// Tests cuts of jobs with so many tables that several tables share a file.

#include <cstdint>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/base/check.h"
#include "common/checkpoint/manifest.h"
#include "common/numeric/crc32c.h"
#include "common/numeric/hash.h"
#include "common/numeric/random.h"
#include "common/testing/temp_dir.h"
#include "embedding_ps/checkpoint/cut_writer.h"
#include "embedding_ps/checkpoint/load_tables.h"
#include "embedding_ps/checkpoint/testing/saved_tables_fixture.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

// Most tables have few rows; one table has many rows in each of its ranges.
class ManyTablesTest : public testing::Test {
 protected:
  std::string NewFolder() {
    const std::string folder = directory_ + "/" + std::to_string(folders_++);
    CHECK_OK(DiskFileSystem()->CreateFolders(folder));
    return folder;
  }
  static constexpr uint32_t kTables = 30;
  static constexpr uint64_t kRowsOfLargest = 40000;

  using All = std::vector<std::unique_ptr<EmbeddingTable>>;
  static All NewTables(int ps, int num_ps) {
    All tables;
    for (uint32_t id = 1; id <= kTables; ++id) {
      TableConfig config;
      config.set_id(id);
      config.set_name("table " + std::to_string(id));
      SegmentConfig* segment = config.add_segments();
      segment->set_name("embedding");
      segment->set_dim(static_cast<int>(1 + id % 3));
      segment->mutable_initializer()->mutable_uniform()->set_low(-1);
      segment->mutable_initializer()->mutable_uniform()->set_high(1);
      segment->mutable_optimizer()->mutable_adagrad();
      tables.push_back(*EmbeddingTable::Create(config, OptionsOfPs(ps, num_ps)));
    }
    return tables;
  }
  static std::vector<EmbeddingTable*> Pointers(const All& tables) {
    std::vector<EmbeddingTable*> pointers;
    for (const auto& table : tables) pointers.push_back(table.get());
    return pointers;
  }
  static All FilledTables(int ps, int num_ps) {
    All tables = NewTables(ps, num_ps);
    for (const auto& table : tables) {
      const uint32_t id = table->config().id();
      std::vector<uint64_t> keys;
      // The table with id 1 has no rows at all.
      for (uint64_t i = 0; i < (id == 7 ? kRowsOfLargest : id - 1); ++i) {
        const uint64_t key = KeyOf(i, id);
        if (PsOfPartition(PartitionOf(key), num_ps) == ps) keys.push_back(key);
      }
      table->CreateRows(keys);
    }
    return tables;
  }
  // Saves the tables as `num_ps` PSs save them. Writes the manifest and returns it.
  CheckpointManifest Save(int num_ps, const std::string& folder) {
    std::vector<SavedFile> files;
    for (int ps = 0; ps < num_ps; ++ps) {
      const All tables = FilledTables(ps, num_ps);
      const CutWriter::Result saved = SaveNow(Pointers(tables), folder);
      CHECK_OK(saved.status);
      std::set<std::string> names;
      for (const SavedFile& file : saved.files) names.insert(file.name());
      EXPECT_LE(names.size(), kMostFilesOfPs) << "of PS " << ps;
      EXPECT_LT(names.size(), kTables) << "of PS " << ps;
      files.insert(files.end(), saved.files.begin(), saved.files.end());
    }
    const All any = NewTables(0, 1);
    const CheckpointManifest manifest = ManifestOf(Pointers(any), files);
    CHECK_OK(WriteManifest(folder, manifest));
    return manifest;
  }
  static std::vector<TableContent> LoadOn(int num_ps, const std::string& folder) {
    std::vector<TableContent> content(kTables);
    for (int ps = 0; ps < num_ps; ++ps) {
      const All tables = NewTables(ps, num_ps);
      CHECK_OK(LoadNow(Pointers(tables), folder).status);
      for (size_t i = 0; i < tables.size(); ++i) {
        const TableContent own = ContentOf(*tables[i]);
        content[i].insert(own.begin(), own.end());
      }
    }
    return content;
  }

  const TempDir temp_;
  const std::string directory_ = temp_.path();
  int folders_ = 0;
};

TEST_F(ManyTablesTest, ShareFilesThatLoadOnAnyNumberOfPss) {
  std::vector<TableContent> wanted;
  for (const auto& table : FilledTables(0, 1)) wanted.push_back(ContentOf(*table));
  ASSERT_EQ(wanted[6].size(), kRowsOfLargest);
  uint64_t digest = 0;
  for (const int num_ps : {1, 2, 3}) {
    const std::string folder = NewFolder();
    const CheckpointManifest manifest = Save(num_ps, folder);
    if (digest == 0) digest = ModelDigest(manifest);
    EXPECT_EQ(ModelDigest(manifest), digest) << "of " << num_ps << " PSs";
    EXPECT_EQ(MinReaderVersion(manifest), kManifestVersion);
    EXPECT_EQ(LoadOn(num_ps, folder), wanted);
    EXPECT_EQ(LoadOn(5, folder), wanted) << "saved by " << num_ps;
  }
}

TEST_F(ManyTablesTest, TheManifestTellsTheBytesAndTheChecksumOfEachPart) {
  const std::string folder = NewFolder();
  const CheckpointManifest manifest = Save(2, folder);
  for (const FileOfManifest& file : FilesOf(manifest)) {
    const std::string content = *ReadFile(folder + "/" + file.name, DiskFileSystem());
    ASSERT_EQ(file.bytes(), content.size()) << file.name;
    size_t at = 0;
    for (const FileOfManifest::Part& part : file.parts) {
      EXPECT_EQ(part.crc32c, Crc32c(content.substr(at, part.bytes))) << file.name << " at " << at;
      at += part.bytes;
    }
  }
}

TEST_F(ManyTablesTest, DamageInAnyPartIsFoundAndNamed) {
  const std::string folder = NewFolder();
  const CheckpointManifest manifest = Save(1, folder);
  const std::vector<PartOfFile> parts = PartsOfFiles(manifest);
  for (int i = 0; i < manifest.table_files_size(); ++i) {
    const std::string path = folder + "/" + manifest.table_files(i).name();
    const std::string content = *ReadFile(path, DiskFileSystem());
    std::string damaged = content;
    damaged[parts[i].offset + manifest.table_files(i).bytes() / 2] ^= 1;
    std::ofstream(path, std::ios::binary) << damaged;
    const All tables = NewTables(0, 1);
    const absl::Status status = LoadNow(Pointers(tables), folder).status;
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << "part " << i;
    EXPECT_NE(status.message().find(path), absl::string_view::npos) << status;
    std::ofstream(path, std::ios::binary) << content;
  }
  // If one part is missing from a manifest, the parts after it seem to begin at other offsets than
  // they do.
  CheckpointManifest shorter = manifest;
  for (int i = 0; i < manifest.table_files_size(); ++i) {
    if (parts[i].is_last) continue;
    shorter.mutable_table_files()->DeleteSubrange(i, 1);
    break;
  }
  CHECK_OK(WriteManifest(folder, shorter));
  const All tables = NewTables(0, 1);
  EXPECT_EQ(LoadNow(Pointers(tables), folder).status.code(), absl::StatusCode::kDataLoss);
}

// The tables change while their files are written. The files must hold the content at the mark.
TEST_F(ManyTablesTest, AreWrittenAsTheyWereAtTheMark) {
  const All tables = FilledTables(0, 1);
  std::vector<TableContent> wanted;
  for (const auto& table : tables) wanted.push_back(ContentOf(*table));
  const std::string folder = NewFolder();
  ManualExecutor executor;
  CutWriter::Result saved;
  bool ended = false;
  CutWriter::Mark(WriterOf(Pointers(tables), folder, &executor))
      ->Start([&](const CutWriter::Result& result) {
        saved = result;
        ended = true;
      });
  SplitMix64 random(1);
  while (!ended) {
    EmbeddingTable& table = *tables[random.Below(kTables)];
    const std::vector<uint64_t> key = {KeyOf(random.Below(50), table.config().id())};
    const std::vector<float> gradient(table.layout().num_values(), 1);
    table.Update(key, gradient, {}, StepContext());
    executor.RunOne();
  }
  CHECK_OK(saved.status);
  const All any = NewTables(0, 1);
  CHECK_OK(WriteManifest(folder, ManifestOf(Pointers(any), saved.files)));
  EXPECT_EQ(LoadOn(2, folder), wanted);
}

}  // namespace
}  // namespace satrap
