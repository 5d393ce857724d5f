#include "data_loader/batch/quarantine_files.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/file/quarantine_name.h"
#include "common/testing/temp_dir.h"
#include "data_loader/batch/read_progress.h"

namespace satrap {
namespace {

class QuarantineFilesTest : public testing::Test {
 protected:
  // Writes the quarantine files that loader `index` leaves in a generation if it found these bad
  // lines.
  void Find(uint64_t generation, int index, std::vector<BadLine> lines) {
    ReadProgress::Options options;
    options.quarantine_dir = dir_.path() + "/quarantine";
    options.generation = generation;
    options.loader_index = index;
    ReadProgress progress(options);
    for (const BadLine& line : lines) ASSERT_TRUE(progress.AddBad(line).ok());
  }
  static BadLine Bad(uint32_t split, uint64_t block, uint64_t offset,
                     Stream stream = TRAIN_STREAM) {
    BadLine line = {"f", offset, 0, stream, "bad", "text", split, block, 0};
    return line;
  }
  // Merges the pairs. Returns each line of the result as "STREAM SPLIT OFFSET".
  std::vector<std::string> Merge(const Ledger* ledger) {
    const auto lines = MergeQuarantine(dir_.path(), ledger);
    EXPECT_TRUE(lines.ok()) << lines.status();
    std::vector<std::string> places;
    const std::string text = Read("quarantine.tsv");
    for (const absl::string_view place : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
      const std::vector<std::string> fields = absl::StrSplit(place, '\t');
      places.push_back(absl::StrCat(fields[3], " ", fields[5], " ", fields[1]));
    }
    EXPECT_EQ(*lines, places.size());
    return places;
  }
  std::string Read(const std::string& name) const {
    const std::string path = dir_.path() + "/quarantine/" + name;
    return std::filesystem::exists(path) ? TempDir::Read(path) : "";
  }

  using Texts = std::vector<std::string>;
  TempDir dir_;
};

TEST_F(QuarantineFilesTest, EachBadLineIsOnceInTheOrderOfStreamSplitAndOffset) {
  Find(1, 0, {Bad(1, 0, 500), Bad(0, 0, 10), Bad(0, 1, 70), Bad(0, 0, 3, TEST_STREAM)});
  Find(1, 1, {Bad(2, 0, 5)});
  Find(2, 0, {Bad(0, 1, 70), Bad(0, 0, 3, TEST_STREAM)});
  Find(12, 1, {Bad(1, 0, 500), Bad(1, 0, 900), Bad(0, 0, 9, VALID_STREAM)});
  EXPECT_EQ(Merge(nullptr), (Texts{"train 0 10", "train 0 70", "train 1 500", "train 1 900",
                                   "train 2 5", "valid 0 9", "test 0 3"}));
  EXPECT_EQ(Merge(nullptr).size(), 7u) << "it may be merged again";
}

TEST_F(QuarantineFilesTest, TheTextOfALineStaysBesideItsPlace) {
  BadLine a = Bad(0, 0, 1);
  BadLine b = Bad(0, 0, 2);
  a.text = "the first\r";
  b.text = "the second";
  Find(1, 0, {b});
  Find(2, 0, {a, b});
  EXPECT_EQ(Merge(nullptr), (Texts{"train 0 1", "train 0 2"}));
  EXPECT_EQ(Read("quarantine.txt"), "the first\r\nthe second\n");
}

TEST_F(QuarantineFilesTest, TrainLinesAreCutToWhatTheLedgerHolds) {
  Find(1, 0,
       {Bad(0, 0, 1), Bad(0, 1, 2), Bad(0, 2, 3), Bad(1, 0, 4), Bad(1, 7, 5),
        Bad(5, 0, 6, TEST_STREAM)});
  Ledger ledger;
  EXPECT_EQ(Merge(&ledger), Texts{"test 5 6"}) << "evaluation is not in the ledger";
  ProvenanceRange range;
  range.set_split(0);
  range.set_block(1);
  range.set_to(3);
  range.set_block_rows(10);
  ASSERT_TRUE(ledger.Add(0, range).ok());
  range.set_block(0);
  range.set_from(3);
  range.set_to(10);
  ASSERT_TRUE(ledger.Add(0, range).ok());
  EXPECT_EQ(Merge(&ledger), (Texts{"train 0 2", "test 5 6"}))
      << "of block 0 the first record, which counts the line, is not consumed";
  range.set_split(1);
  range.set_from(0);
  ASSERT_TRUE(ledger.Add(0, range).ok());
  EXPECT_EQ(Merge(&ledger), (Texts{"train 0 2", "train 1 4", "test 5 6"}));
  ProvenanceRange end;
  end.set_split(1);
  end.set_ends_split(true);
  end.set_split_rows(10);
  ASSERT_TRUE(ledger.Add(0, end).ok());
  EXPECT_EQ(Merge(&ledger), (Texts{"train 0 2", "train 1 4", "train 1 5", "test 5 6"}));
  ledger.CloseEpochsBefore(1);
  EXPECT_EQ(Merge(&ledger).size(), 6u) << "an epoch that is over is consumed whole";
}

TEST_F(QuarantineFilesTest, TheLinesOfAMessageAreKeptApartAndCutToTheOffsetsThatAreConsumed) {
  const auto bad = [](uint64_t offset, uint64_t line) {
    return BadLine{"clicks/0", offset, line, TRAIN_STREAM, "bad", "text", 0, offset, 0};
  };
  Find(1, 0, {bad(120, 1), bad(120, 3), bad(160, 1)});
  Find(2, 0, {bad(120, 1), bad(120, 3)});
  EXPECT_EQ(Merge(nullptr), (Texts{"train 0 120", "train 0 120", "train 0 160"}));
  // The ledger has consumed the first slots of block [100, 150). Offset 120 is in that block, and
  // offset 160 is not.
  Ledger ledger;
  ProvenanceRange range;
  range.set_block(100);
  range.set_block_end(150);
  range.set_to(10);
  range.set_records(0);
  ASSERT_TRUE(ledger.Add(0, range).ok());
  EXPECT_EQ(Merge(&ledger), (Texts{"train 0 120", "train 0 120"}));
}

TEST_F(QuarantineFilesTest, WhatAKilledLoaderLeftIncompleteIsLeftOut) {
  Find(1, 0, {Bad(0, 0, 1), Bad(0, 0, 2)});
  const std::string pair = "quarantine/" + QuarantineName(1, 0);
  const std::string places = TempDir::Read(dir_.path() + "/" + pair + ".tsv");
  dir_.Write(pair + ".txt", "text\ntext\nte");
  dir_.Write(pair + ".tsv", places + "f\t3");
  EXPECT_EQ(Merge(nullptr), (Texts{"train 0 1", "train 0 2"}));
  dir_.Write(pair + ".tsv", places.substr(0, places.size() - 1));
  EXPECT_EQ(Merge(nullptr), (Texts{"train 0 1"}));
  dir_.Write("quarantine/" + QuarantineName(2, 0) + ".tsv", "");  // its .txt was not made
  EXPECT_EQ(Merge(nullptr), (Texts{"train 0 1"}));
}

TEST_F(QuarantineFilesTest, WithoutBadLinesThereIsNoFile) {
  EXPECT_TRUE(Merge(nullptr).empty());
  Find(1, 0, {Bad(0, 0, 1)});
  EXPECT_EQ(Merge(nullptr).size(), 1u);
  Ledger nothing;
  EXPECT_TRUE(Merge(&nothing).empty());
  EXPECT_EQ(Read("quarantine.txt"), "") << "an earlier pair is removed";
}

}  // namespace
}  // namespace satrap
