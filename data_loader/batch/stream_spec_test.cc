#include "data_loader/batch/stream_spec.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/testing/temp_dir.h"

namespace satrap {
namespace {

// A job with two splits in Criteo's format.
JobConfig Job(const TempDir& dir) {
  JobConfig job;
  job.set_data_root(dir.path());
  job.mutable_data()->mutable_criteo_tsv();
  job.mutable_data()->add_train_files(dir.Write("day", "0123456789"));
  job.mutable_data()->set_split_bytes(5);
  job.mutable_data()->set_shuffle_rows(100);
  job.mutable_data()->add_features()->set_name("C1");
  return job;
}

class StreamSpecTest : public testing::Test {
 protected:
  std::shared_ptr<const StreamSpec> Spec(const JobConfig& job, Stream stream = TRAIN_STREAM) {
    return *StreamSpec::Make(job, stream, &progress_);
  }
  // A block of the first `rows` records of a split, in the order of the file.
  static BlockRange Rows(const StreamSpec& spec, uint32_t split, uint32_t rows) {
    auto block = std::make_shared<Block>(spec.schema);
    block->split = split;
    for (uint32_t i = 0; i < rows; ++i) {
      block->records.BeginRow();
      block->records.CommitRow();
    }
    KeepOrder(block.get());
    return {block, 0, rows};
  }
  // Describes each part as "FIRST_SAMPLE: SPLIT[FROM,TO) ...".
  static std::vector<std::string> Describe(const std::vector<Part>& parts) {
    std::vector<std::string> texts;
    for (const Part& part : parts) {
      std::string text = absl::StrCat(part.header.part().first_sample(), ":");
      for (const ProvenanceRange& range : part.header.part().provenance()) {
        absl::StrAppend(&text, " ", range.split(), "[", range.from(), ",", range.to(), ")");
      }
      texts.push_back(std::move(text));
    }
    return texts;
  }

  using Texts = std::vector<std::string>;
  TempDir dir_;
  ReadProgress progress_{ReadProgress::Options()};
};

TEST_F(StreamSpecTest, OnlyTheTrainStreamIsShuffledAndOrdered) {
  JobConfig job = Job(dir_);
  job.mutable_data()->add_valid_files("day");
  job.set_mode(JobConfig::SYNC);
  const auto train = Spec(job);
  EXPECT_TRUE(train->ordered && train->shuffled);
  EXPECT_EQ(train->block_rows, 100u);
  EXPECT_EQ(train->splits.size(), 2u);
  const auto valid = Spec(job, VALID_STREAM);
  EXPECT_FALSE(valid->ordered || valid->shuffled);
  EXPECT_EQ(valid->block_rows, kUnshuffledBlockRows);
  job.set_mode(JobConfig::HYBRID);
  job.mutable_data()->set_shuffle_rows(0);
  const auto hybrid = Spec(job);
  EXPECT_FALSE(hybrid->ordered || hybrid->shuffled);
  EXPECT_EQ(hybrid->block_rows, kUnshuffledBlockRows);
}

TEST_F(StreamSpecTest, TheBadRecordsOfAFileAreReportedByOneStream) {
  JobConfig job = Job(dir_);
  job.mutable_data()->mutable_seeded_split()->set_test_fraction(0.5);
  EXPECT_TRUE(Spec(job)->reports_bad);
  EXPECT_FALSE(Spec(job, TEST_STREAM)->reports_bad) << "the train stream reads them too";
  job.set_action(JobConfig::EVALUATE);
  EXPECT_TRUE(Spec(job, TEST_STREAM)->reports_bad) << "nothing is trained";
  job.set_action(JobConfig::TRAIN);
  job.mutable_data()->add_test_files("day");
  EXPECT_TRUE(Spec(job, TEST_STREAM)->reports_bad) << "files of its own";
}

TEST_F(StreamSpecTest, ABatchIsCutAcrossItsRanges) {
  JobConfig job = Job(dir_);
  job.mutable_nn_worker()->set_replicas(3);
  const auto spec = Spec(job);
  const std::vector<BlockRange> batch = {Rows(*spec, 0, 3), Rows(*spec, 1, 4)};
  EXPECT_EQ(Describe(CutBatch(*spec, batch, {}, 0, false)),
            (Texts{"0: 0[0,2)", "2: 0[2,3) 1[0,1)", "4: 1[1,4)"}));
}

TEST_F(StreamSpecTest, PartsOfNoSamplesAreMadeWhereTheyAreAskedForByName) {
  JobConfig job = Job(dir_);
  job.mutable_nn_worker()->set_replicas(3);
  const auto unordered = Spec(job);
  const BlockRange one = Rows(*unordered, 1, 1);
  EXPECT_EQ(Describe(CutBatch(*unordered, {one}, {}, 0, true)), (Texts{"0: 1[0,1)"}));
  job.set_mode(JobConfig::SYNC);
  const std::vector<Part> parts = CutBatch(*Spec(job), {one}, {}, 4, true);
  EXPECT_EQ(Describe(parts), (Texts{"0:", "0:", "0: 1[0,1)"}));
  for (const Part& part : parts) {
    EXPECT_TRUE(part.header.part().last_of_lane());
    EXPECT_EQ(part.header.part().id().epoch(), 4u);
  }
}

TEST_F(StreamSpecTest, TheEndsOfSplitsGoWithTheLastPart) {
  JobConfig job = Job(dir_);
  job.mutable_nn_worker()->set_replicas(3);
  const auto spec = Spec(job);
  SplitEnd end;
  end.end_block = 3;
  end.rows = 20;
  end.bad_records = 2;
  const std::vector<ProvenanceRange> ends = {EndOfSplit(5, end), EndOfSplit(6, SplitEnd())};
  const std::vector<Part> parts = CutBatch(*spec, {Rows(*spec, 0, 2)}, ends, 0, false);
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].header.part().provenance_size(), 1);
  ASSERT_EQ(parts[1].header.part().provenance_size(), 3);
  EXPECT_EQ(parts[1].header.part().provenance(1).ShortDebugString(),
            "split: 5 block: 3 from: 0 to: 0 bad_records: 2 ends_split: true split_rows: 20");
  EXPECT_EQ(parts[1].header.part().provenance(2).split(), 6u);
  const std::vector<Part> alone = CutBatch(*spec, {}, ends, 7, false);
  ASSERT_EQ(alone.size(), 1u) << "unordered";
  EXPECT_EQ(alone[0].header.part().samples(), 0u);
  EXPECT_EQ(alone[0].header.part().id().epoch(), 7u);
  EXPECT_EQ(alone[0].header.part().provenance_size(), 2);
}

TEST_F(StreamSpecTest, ARangeFromZeroCarriesTheCountsOfItsBlock) {
  JobConfig job = Job(dir_);
  job.mutable_nn_worker()->set_replicas(2);
  const auto spec = Spec(job);
  const BlockRange range = Rows(*spec, 0, 4);
  auto block = std::make_shared<Block>(*range.block);
  block->bad_records = 3;
  block->empty_lines = 1;
  const std::vector<Part> parts = CutBatch(*spec, {{block, 0, 4}}, {}, 0, false);
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].header.part().provenance(0).block_rows(), 4u);
  EXPECT_EQ(parts[0].header.part().provenance(0).bad_records(), 3u);
  EXPECT_EQ(parts[0].header.part().provenance(0).empty_lines(), 1u);
  EXPECT_EQ(parts[1].header.part().provenance(0).block_rows(), 4u);
  EXPECT_FALSE(parts[1].header.part().provenance(0).has_bad_records());
}

TEST_F(StreamSpecTest, AnEmptyPartNamesItsStreamAndPass) {
  JobConfig job = Job(dir_);
  job.mutable_data()->add_valid_files("day");
  const Part part = EmptyPart(*Spec(job, VALID_STREAM), 7);
  EXPECT_EQ(part.header.stream(), VALID_STREAM);
  EXPECT_EQ(part.header.epoch(), 7u);
  EXPECT_EQ(part.header.part().id().stream(), VALID_STREAM);
  EXPECT_EQ(part.header.part().samples(), 0u);
  EXPECT_EQ(part.header.features_size(), 1);
}

}  // namespace
}  // namespace satrap
