#include "nn_worker/rank/predictions.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

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

  const std::string dir_;
};

TEST_F(PredictionsTest, FilesOfRanksAreMergedByPosition) {
  auto first = Writer(0);
  ASSERT_TRUE(first->Add(Part(1, 0, 0, 1), {0.f}).ok());
  ASSERT_TRUE(first->Add(Part(0, 1, 0, 1), {1.f}).ok());
  ASSERT_TRUE(first->Close().ok());
  auto second = Writer(1);
  ASSERT_TRUE(second->Add(Part(0, 0, 7, 9), {-100.f, 100.f}).ok());
  ASSERT_TRUE(second->Close().ok());

  const auto all = ReadPredictions(dir_, 2);
  ASSERT_TRUE(all.ok()) << all.status();
  ASSERT_EQ(all->size(), 4u);
  EXPECT_EQ((*all)[0].index, 7u);
  EXPECT_NEAR((*all)[0].probability, 0, 1e-12);
  EXPECT_EQ((*all)[1].index, 8u);
  EXPECT_NEAR((*all)[1].probability, 1, 1e-12);
  EXPECT_EQ((*all)[2].block, 1u);
  EXPECT_NEAR((*all)[2].probability, 0.7310585786300049, 1e-12);
  EXPECT_EQ((*all)[3].split, 1u);
  EXPECT_EQ((*all)[3].probability, .5);

  ASSERT_TRUE(WritePredictionsText(dir_, 2).ok());
  std::ifstream text(dir_ + "/predictions.txt");
  std::vector<double> lines;
  for (double value; text >> value;) lines.push_back(value);
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_NEAR(lines[2], 0.7310585786300049, 1e-8);
  EXPECT_EQ(lines[3], .5);
}

TEST_F(PredictionsTest, APartMustHaveAPositionForEachSample) {
  auto writer = Writer(0);
  EXPECT_FALSE(writer->Add(Part(0, 0, 0, 1), {1.f, 2.f}).ok());
  EXPECT_FALSE(writer->Add(Part(0, 0, 0, 2), {1.f}).ok());
}

TEST_F(PredictionsTest, AFileThatWasNotClosedIsRefused) {
  {
    auto writer = Writer(0);
    ASSERT_TRUE(writer->Add(Part(0, 0, 0, 1), {1.f}).ok());
  }
  EXPECT_EQ(ReadPredictions(dir_, 1).status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(PredictionsTest, ARecordPredictedTwiceIsAnError) {
  auto writer = Writer(0);
  ASSERT_TRUE(writer->Add(Part(0, 0, 3, 4), {1.f}).ok());
  ASSERT_TRUE(writer->Add(Part(0, 0, 3, 4), {1.f}).ok());
  ASSERT_TRUE(writer->Close().ok());
  EXPECT_EQ(ReadPredictions(dir_, 1).status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(PredictionsTest, AMissingFileIsNotFound) {
  EXPECT_EQ(ReadPredictions(dir_, 1).status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace satrap
