#include "deploy/cli/chaos/exactly_once.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "common/checkpoint/manifest.h"
#include "common/checkpoint/run_log.h"
#include "common/numeric/crc32c.h"
#include "common/numeric/hash.h"
#include "deploy/launcher/testing/logged_run.h"
#include "gmock/gmock.h"

namespace satrap {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

template <typename T>
void AppendNumber(T number, std::string* bytes) {
  bytes->append(reinterpret_cast<const char*>(&number), sizeof(number));
}

// A run of 4 records and 2 epochs that has ended.
class ExactlyOnceTest : public LoggedRunTest {
 protected:
  void SetUp() override {
    LoggedRunTest::SetUp();
    folder_ = CheckpointsDir(dir_) + "/cut_0001_000002";
    fs::create_directories(folder_);
    Append(R"(generation { generation: 1 job {
        epochs: 2
        data { synthetic { train_samples: 4 } features { name: 'record' table: 'tally' } }
        tables { name: 'tally' id: 5 segments { name: 'count' dim: 1 } } } })");
    Append("cut { generation: 1 cut: 'cut_0001_000002' step: 9 }");
    Append("end { result { samples: 8 } }");
    WriteLedger(4, 4);
  }
  void WriteLedger(uint64_t first_epoch, uint64_t second_epoch) {
    CheckpointManifest manifest;
    manifest.set_version(kManifestVersion);
    for (const uint64_t rows : {first_epoch, second_epoch}) {
      EpochLedger* epoch = manifest.mutable_ledger()->add_epochs();
      epoch->set_epoch(static_cast<uint32_t>(manifest.ledger().epochs_size() - 1));
      epoch->set_rows(rows);
    }
    for (const char* name : {"a.rows", "b.rows"}) {
      SavedFile* file = manifest.add_table_files();
      file->set_name(name);
      file->set_table(5);
    }
    ASSERT_TRUE(WriteManifest(folder_, manifest).ok());
  }
  // Writes a file of rows (record, value), with two rows in each block.
  void WriteRows(const std::string& name, const std::vector<std::pair<uint64_t, float>>& rows) {
    std::string bytes = "SATRROW3";
    for (const uint32_t number : {5u, 0u, 4095u, 1u}) AppendNumber(number, &bytes);
    bytes.resize(64, '\0');
    for (size_t first = 0; first < rows.size(); first += 2) {
      const size_t end = std::min(first + 2, rows.size());
      std::string block;
      for (size_t i = first; i < end; ++i) {
        AppendNumber(KeyOf(rows[i].first, Xxh64("record")), &block);
      }
      for (size_t i = first; i < end; ++i) AppendNumber(rows[i].second, &block);
      std::string count;
      AppendNumber(static_cast<uint32_t>(end - first), &count);
      bytes += count;
      AppendNumber(ExtendCrc32c(Crc32c(count), block), &bytes);
      bytes += block;
    }
    bytes += std::string(16, '\0');
    std::ofstream(folder_ + "/" + name, std::ios::binary) << bytes;
  }
  std::string TallyError() const { return std::string(CheckTally(dir_).status().message()); }

  std::string folder_;
};

TEST_F(ExactlyOnceTest, ATableWithEveryRecordOnceAnEpochIsAProof) {
  WriteRows("a.rows", {{0, 2}, {2, 2}, {3, 2}});
  WriteRows("b.rows", {{1, 2}});
  const auto proof = CheckTally(dir_);
  ASSERT_TRUE(proof.ok()) << proof.status();
  EXPECT_EQ(*proof, "table 'tally' proves that each of 4 records was trained 2 times");
}

TEST_F(ExactlyOnceTest, WhatWasLostOrDoneTwiceIsNamed) {
  WriteRows("a.rows", {{0, 2}, {2, 3}, {9, 2}});
  WriteRows("b.rows", {{1, 1}, {0, 2}});
  EXPECT_THAT(
      TallyError(),
      AllOf(HasSubstr("3 of 4 records were not trained exactly 2 times, and 2 rows belong to no "
                      "record"),
            HasSubstr("\n  record 1 was trained 1 times"),
            HasSubstr("\n  record 2 was trained 3 times"), HasSubstr("\n  record 3 has no row")));
}

TEST_F(ExactlyOnceTest, ADamagedFileIsNamed) {
  WriteRows("a.rows", {{0, 2}, {2, 2}, {3, 2}});
  WriteRows("b.rows", {{1, 2}});
  std::fstream file(folder_ + "/a.rows", std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(80);
  file.put('\x55');
  file.close();
  EXPECT_THAT(TallyError(), HasSubstr("/a.rows is damaged at offset 64"));
}

TEST_F(ExactlyOnceTest, TheLedgerHoldsEverySampleOnce) {
  EXPECT_EQ(CheckLedger(dir_).value_or(""), "the ledger holds each of 8 samples once");
  WriteLedger(4, 3);
  EXPECT_THAT(CheckLedger(dir_).status().message(),
              HasSubstr("epoch 2 has 3 records, but the first one has 4"));
  WriteLedger(5, 5);
  EXPECT_THAT(CheckLedger(dir_).status().message(),
              HasSubstr("the ledger holds 10 records, but 8 samples were trained"));
}

TEST_F(ExactlyOnceTest, AJobThatDoesNotCountProvesNothing) {
  Append("generation { generation: 2 job { data { synthetic {} } } }");
  EXPECT_EQ(CheckTally(dir_).status().code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace satrap
