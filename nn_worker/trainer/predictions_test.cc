#include "nn_worker/trainer/predictions.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

class PredictionsTest : public testing::Test {
 protected:
  PredictionsTest()
      : dir_(testing::TempDir() + "/" +
             testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::remove_all(dir_);
  }

  static PartDescription Part(uint32_t split, uint64_t block, uint32_t from, uint32_t to) {
    PartDescription part;
    ProvenanceRange* range = part.add_provenance();
    range->set_split(split);
    range->set_block(block);
    range->set_from(from);
    range->set_to(to);
    return part;
  }

  std::unique_ptr<PredictionWriter> Writer(int rank) {
    return *PredictionWriter::Create(dir_, rank);
  }

  struct BadRecord {
    uint32_t split;
    uint64_t block;
    uint64_t index;
  };
  void WriteBadRecords(int loader, const std::vector<BadRecord>& records,
                       const std::string& stream = "test") {
    std::filesystem::create_directories(dir_ + "/quarantine");
    std::ofstream file(absl::StrCat(dir_, "/quarantine/g0001-loader-", loader, ".tsv"));
    for (const BadRecord& record : records) {
      file << "a b.csv\t120\t0\t" << stream << "\tan unknown label\t" << record.split << "\t"
           << record.block << "\t" << record.index << "\n";
    }
  }

  // The lines of predictions.txt.
  std::vector<std::string> Text(int num_ranks, int num_loaders) {
    const absl::Status status = WritePredictionsText(dir_, num_ranks, num_loaders);
    EXPECT_TRUE(status.ok()) << status;
    std::ifstream text(dir_ + "/predictions.txt");
    std::vector<std::string> lines;
    for (std::string line; std::getline(text, line);) lines.push_back(line);
    return lines;
  }

  const std::string dir_;
};

std::string LineOf(double prediction) { return absl::StrFormat("%.9g", prediction); }

TEST_F(PredictionsTest, PositionsOfATopicAreRefused) {
  const auto writer = Writer(0);
  PartDescription part = Part(0, 100, 0, 2);
  part.mutable_provenance(0)->set_block_end(110);
  const absl::Status added = writer->Add(part, {0.5, 1.0});
  EXPECT_EQ(added.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(added.message().find("the test stream is a topic"), std::string::npos) << added;
}

TEST_F(PredictionsTest, FilesOfRanksAreMergedByPosition) {
  auto first = Writer(0);
  ASSERT_TRUE(first->Add(Part(1, 0, 0, 1), {0.}).ok());
  ASSERT_TRUE(first->Add(Part(0, 1, 0, 1), {1.}).ok());
  ASSERT_TRUE(first->Close().ok());
  auto second = Writer(1);
  ASSERT_TRUE(second->Add(Part(0, 0, 7, 9), {1e-44, 1. / 3}).ok());
  ASSERT_TRUE(second->Close().ok());

  const auto all = ReadPredictions(dir_, 2);
  ASSERT_TRUE(all.ok()) << all.status();
  ASSERT_EQ(all->size(), 4u);
  EXPECT_EQ((*all)[0].index, 7u);
  EXPECT_EQ((*all)[0].values[0], 1e-44);
  EXPECT_EQ((*all)[1].index, 8u);
  EXPECT_EQ((*all)[1].values[0], 1. / 3);
  EXPECT_EQ((*all)[2].block, 1u);
  EXPECT_EQ((*all)[2].values[0], 1);
  EXPECT_EQ((*all)[3].split, 1u);
  EXPECT_EQ((*all)[3].values[0], 0);

  EXPECT_EQ(Text(2, 1), (std::vector<std::string>{"1e-44", "0.333333333", "1", "0"}));
}

TEST_F(PredictionsTest, EachBadRecordHasALineWhereItStandsInTheFile) {
  auto writer = Writer(0);
  // The records with predictions 1 and 2 are a whole block. No good record follows the one with
  // prediction 4 in its split. Split 1 has no good record.
  ASSERT_TRUE(writer->Add(Part(0, 0, 0, 2), {1., 2.}).ok());
  ASSERT_TRUE(writer->Add(Part(0, 1, 0, 2), {3., 4.}).ok());
  ASSERT_TRUE(writer->Add(Part(2, 0, 0, 1), {5.}).ok());
  ASSERT_TRUE(writer->Close().ok());
  WriteBadRecords(0, {{2, 0, 0}, {2, 0, 1}, {0, 0, 0}, {0, 1, 0}, {0, 1, 0}});
  WriteBadRecords(2, {{1, 0, 0}, {1, 0, 0}, {0, 1, 2}, {0, 0, 1}});
  const std::vector<std::string> expected = {"nan", LineOf(1), "nan",     LineOf(2), "nan",
                                             "nan", LineOf(3), LineOf(4), "nan",  // split 0
                                             "nan", "nan",                        // split 1
                                             "nan", LineOf(5), "nan"};            // split 2
  EXPECT_EQ(Text(1, 3), expected);
}

TEST_F(PredictionsTest, AFileOfBadRecordsHasNoProbabilities) {
  ASSERT_TRUE(Writer(0)->Close().ok());
  EXPECT_EQ(Text(1, 1), std::vector<std::string>());
  WriteBadRecords(0, {{0, 0, 0}, {1, 0, 0}});
  EXPECT_EQ(Text(1, 1), (std::vector<std::string>{"nan", "nan"}));
}

TEST_F(PredictionsTest, BadRecordsOfOtherStreamsHaveNoLine) {
  auto writer = Writer(0);
  ASSERT_TRUE(writer->Add(Part(0, 0, 0, 1), {0.}).ok());
  ASSERT_TRUE(writer->Close().ok());
  WriteBadRecords(0, {{0, 0, 0}}, "valid");
  WriteBadRecords(1, {{0, 0, 0}}, "train");
  EXPECT_EQ(Text(1, 2), std::vector<std::string>{"0"});
}

TEST_F(PredictionsTest, ABadRecordWithoutAPositionIsAnError) {
  auto writer = Writer(0);
  ASSERT_TRUE(writer->Close().ok());
  std::filesystem::create_directories(dir_ + "/quarantine");
  for (const char* line :
       {"f\t0\t1\ttest\tbad", "f\t0\t1\ttest\tbad\t0\t0\tx", "f\t0\t1\ttest\tbad\t0\t0\t0\t0"}) {
    std::ofstream(dir_ + "/quarantine/g0001-loader-0.tsv") << line << "\n";
    const absl::Status status = WritePredictionsText(dir_, 1, 1);
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << line;
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr("loader-0.tsv"));
  }
}

TEST_F(PredictionsTest, APartMustHaveAPositionForEachSample) {
  auto writer = Writer(0);
  EXPECT_FALSE(writer->Add(Part(0, 0, 0, 1), {1., 2.}).ok());
  EXPECT_FALSE(writer->Add(Part(0, 0, 0, 2), {1.}).ok());
}

TEST_F(PredictionsTest, AnOutputThatIsNotANumberIsAnErrorThatNamesItsRecord) {
  const absl::Status status = Writer(0)->Add(Part(3, 2, 5, 7), {0.5, std::nan("")});
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              testing::HasSubstr("record 6 of block 2 of split 3 is not a number"));
}

TEST_F(PredictionsTest, AFileThatWasNotClosedIsRefused) {
  {
    auto writer = Writer(0);
    ASSERT_TRUE(writer->Add(Part(0, 0, 0, 1), {1.}).ok());
  }
  EXPECT_EQ(ReadPredictions(dir_, 1).status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(PredictionsTest, ARecordPredictedTwiceIsAnError) {
  auto writer = Writer(0);
  ASSERT_TRUE(writer->Add(Part(0, 0, 3, 4), {1.}).ok());
  ASSERT_TRUE(writer->Add(Part(0, 0, 3, 4), {1.}).ok());
  ASSERT_TRUE(writer->Close().ok());
  EXPECT_EQ(ReadPredictions(dir_, 1).status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(PredictionsTest, EachTaskHasAColumn) {
  auto writer = *PredictionWriter::Create(dir_, 0, 2);
  EXPECT_FALSE(writer->Add(Part(0, 0, 0, 2), {1., 2.}).ok()) << "four are needed";
  ASSERT_TRUE(writer->Add(Part(0, 0, 0, 2), {.5, -3., .25, 4.}).ok());
  ASSERT_TRUE(writer->Close().ok());
  WriteBadRecords(0, {{0, 0, 1}});
  ASSERT_TRUE(WritePredictionsText(dir_, 1, 1, /*generation=*/1, /*num_tasks=*/2).ok());
  std::ifstream text(dir_ + "/predictions.txt");
  const std::string lines((std::istreambuf_iterator<char>(text)), std::istreambuf_iterator<char>());
  EXPECT_EQ(lines, "0.5\t-3\nnan\tnan\n0.25\t4\n");
}

TEST_F(PredictionsTest, AMissingFileIsNotFound) {
  EXPECT_EQ(ReadPredictions(dir_, 1).status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace satrap
