#include "data_loader/batch/record_batch_maker.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/rpc/payload.h"
#include "common/testing/temp_dir.h"
#include "data_loader/batch/testing/batch_maker_testing.h"

namespace satrap {
namespace {

// A job that reads a file of `rows` lines "label,number"; the number is the line's index.
JobConfig FileJob(const TempDir& dir, int rows) {
  std::string text;
  for (int i = 0; i < rows; ++i) absl::StrAppend(&text, i % 2, ",", i, "\n");
  dir.Write("data", text);
  JobConfig job;
  job.set_data_root(dir.path());
  DataConfig* data = job.mutable_data();
  data->add_train_files("data");
  ColumnConfig* column = data->mutable_csv()->add_columns();
  column->set_name("y");
  column->set_kind(ColumnConfig::LABEL);
  column = data->mutable_csv()->add_columns();
  column->set_name("x");
  column->set_kind(ColumnConfig::NUMERIC);
  data->add_numerics()->set_name("x");
  data->set_shuffle_rows(0);
  job.set_global_batch_size(4);
  return job;
}

std::vector<int> RecordsOf(const Part& part) {
  const PartDescription& description = part.header.part();
  const auto values = rpc::SectionView<float>(part.payload, description.numeric_values(),
                                              description.samples(), "x");
  EXPECT_TRUE(values.ok()) << values.status();
  return {values->begin(), values->end()};
}

struct Epoch {
  std::vector<std::vector<Part>> batches;
  std::vector<int> records;  // in the order of the batches and their parts
};

Epoch ReadEpoch(const StreamSpec& spec, BatchMaker* maker, uint32_t epoch) {
  Epoch result;
  result.batches = RunEpoch(spec, maker, epoch);
  for (const std::vector<Part>& batch : result.batches) {
    for (const Part& part : batch) {
      for (const int record : RecordsOf(part)) result.records.push_back(record);
    }
  }
  return result;
}

std::vector<int> UpTo(int count) {
  std::vector<int> numbers(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) numbers[static_cast<size_t>(i)] = i;
  return numbers;
}

class RecordBatchMakerTest : public testing::Test {
 protected:
  std::shared_ptr<const StreamSpec> Spec(const JobConfig& job, Stream stream = TRAIN_STREAM) {
    auto spec = StreamSpec::Make(job, stream, &progress_);
    EXPECT_TRUE(spec.ok()) << spec.status();
    return *spec;
  }
  Epoch Run(const JobConfig& job, uint32_t epoch = 0, Stream stream = TRAIN_STREAM) {
    const auto spec = Spec(job, stream);
    const auto maker = NewRecordBatchMaker(spec);
    return ReadEpoch(*spec, maker.get(), epoch);
  }

  TempDir dir_;
  ReadProgress progress_{ReadProgress::Options()};
};

TEST_F(RecordBatchMakerTest, KeepsFileOrderAcrossSplitsAndCutsBatchesIntoEqualParts) {
  JobConfig job = FileJob(dir_, 10);
  job.mutable_data()->set_split_bytes(9);
  job.mutable_nn_worker()->set_replicas(3);
  const Epoch epoch = Run(job);
  EXPECT_EQ(epoch.records, UpTo(10));
  ASSERT_EQ(epoch.batches.size(), 3u);
  std::vector<uint32_t> sizes;
  for (const Part& part : epoch.batches[0]) sizes.push_back(part.header.part().samples());
  EXPECT_EQ(sizes, (std::vector<uint32_t>{1, 1, 2}));
  EXPECT_EQ(epoch.batches[0][2].header.part().first_sample(), 2u);
  EXPECT_EQ(epoch.batches[0][2].header.part().id().part(), 2u);
  EXPECT_EQ(epoch.batches[2].size(), 2u) << "unordered: two samples need no third part";
}

TEST_F(RecordBatchMakerTest, AFileThatShrinksBetweenTwoEpochsIsAnErrorOfTheSecond) {
  JobConfig job = FileJob(dir_, 10);
  job.mutable_data()->set_split_bytes(9);
  const auto spec = Spec(job);
  const auto maker = NewRecordBatchMaker(spec);
  EXPECT_EQ(ReadEpoch(*spec, maker.get(), 0).records, UpTo(10));
  dir_.Write("data", "0,0\n1,1\n0,2\n1,3\n");
  maker->BeginEpoch(1);
  maker->AddSplit(0);  // all bytes of this split are still there
  std::vector<Part> parts;
  const auto made = maker->MakeBatch(&parts);
  EXPECT_EQ(made.status().code(), absl::StatusCode::kDataLoss) << made.status();
  EXPECT_NE(made.status().message().find("has 16 bytes but had 40 when the run began"),
            std::string::npos)
      << made.status();
}

TEST_F(RecordBatchMakerTest, OrderedEveryBatchHasAllPartsAndTheLastOneSaysSo) {
  for (const int rows : {8, 9}) {  // a full last batch, and one of one record
    JobConfig job = FileJob(dir_, rows);
    job.set_mode(JobConfig::SYNC);
    job.mutable_nn_worker()->set_replicas(3);
    const Epoch epoch = Run(job);
    EXPECT_EQ(epoch.records, UpTo(rows));
    ASSERT_EQ(epoch.batches.size(), rows == 8 ? 2u : 3u);
    for (size_t b = 0; b < epoch.batches.size(); ++b) {
      ASSERT_EQ(epoch.batches[b].size(), 3u);
      for (const Part& part : epoch.batches[b]) {
        EXPECT_EQ(part.header.part().last_of_lane(), b + 1 == epoch.batches.size());
      }
    }
  }
}

TEST_F(RecordBatchMakerTest, ALaneWithoutRecordsHasOneBatchOfNoSamples) {
  JobConfig job = FileJob(dir_, 0);
  EXPECT_TRUE(Run(job).batches.empty()) << "unordered";
  job.set_mode(JobConfig::SYNC);
  job.mutable_nn_worker()->set_replicas(2);
  const auto spec = Spec(job);
  const auto maker = NewRecordBatchMaker(spec);
  for (uint32_t e = 0; e < 2; ++e) {
    const Epoch epoch = ReadEpoch(*spec, maker.get(), e);
    ASSERT_EQ(epoch.batches.size(), 1u);
    ASSERT_EQ(epoch.batches[0].size(), 2u);
    EXPECT_TRUE(epoch.batches[0][0].header.part().last_of_lane());
    EXPECT_EQ(epoch.batches[0][0].header.epoch(), e);
  }
}

TEST_F(RecordBatchMakerTest, AStreamThatAJobOfRecordMessagesDoesNotHaveIsEmpty) {
  JobConfig job = FileJob(dir_, 0);
  job.mutable_data()->clear_train_files();
  const auto columns = job.data().csv().columns();
  *job.mutable_data()->mutable_record()->mutable_columns() = columns;
  const auto spec = std::make_shared<const StreamSpec>(job, VALID_STREAM, std::vector<Split>(),
                                                       &progress_, StreamBegin());
  const auto maker = NewRecordBatchMaker(spec);
  EXPECT_TRUE(RunEpoch(*spec, maker.get(), 0).empty());
}

TEST_F(RecordBatchMakerTest, TheShuffleStaysInItsBlockAndChangesWithTheEpoch) {
  JobConfig job = FileJob(dir_, 100);
  job.mutable_data()->set_shuffle_rows(30);
  const auto spec = Spec(job);
  const auto maker = NewRecordBatchMaker(spec);
  const Epoch first = ReadEpoch(*spec, maker.get(), 0);
  const Epoch second = ReadEpoch(*spec, maker.get(), 1);
  EXPECT_EQ(first.records, Run(job, 0).records) << "the same on every run";
  EXPECT_NE(first.records, second.records);
  for (size_t i = 0; i < first.records.size(); ++i) EXPECT_EQ(first.records[i] / 30, i / 30);
  std::vector<int> sorted = second.records;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(sorted, UpTo(100));
  job.mutable_data()->add_test_files("data");
  EXPECT_EQ(Run(job, 0, TEST_STREAM).records, UpTo(100)) << "evaluation is never shuffled";
}

TEST_F(RecordBatchMakerTest, TheProvenanceOfAnEpochCoversEveryRecordOnce) {
  JobConfig job = FileJob(dir_, 1000);
  job.set_global_batch_size(64);
  job.mutable_data()->set_shuffle_rows(100);
  job.mutable_data()->set_split_bytes(1000);
  job.mutable_nn_worker()->set_replicas(3);
  const Epoch epoch = Run(job);
  std::map<std::pair<uint32_t, uint64_t>, std::vector<std::pair<uint32_t, uint32_t>>> ranges;
  uint64_t covered = 0;
  for (const auto& batch : epoch.batches) {
    for (const Part& part : batch) {
      uint32_t samples = 0;
      for (const ProvenanceRange& range : part.header.part().provenance()) {
        ranges[{range.split(), range.block()}].push_back({range.from(), range.to()});
        samples += range.to() - range.from();
      }
      EXPECT_EQ(samples, part.header.part().samples());
      covered += samples;
    }
  }
  EXPECT_EQ(covered, 1000u);
  for (auto& [block, of_block] : ranges) {
    std::sort(of_block.begin(), of_block.end());
    uint32_t at = 0;
    for (const auto& [from, to] : of_block) {
      EXPECT_EQ(from, at);
      at = to;
    }
  }
}

// Describes each range of a part, as "SPLIT:[FROM,TO)/BLOCK_ROWS+BAD+EMPTY" or
// "SPLIT:end/ROWS+BAD+EMPTY".
std::string ProvenanceOf(const Part& part) {
  std::string text;
  for (const ProvenanceRange& range : part.header.part().provenance()) {
    absl::StrAppend(&text, text.empty() ? "" : " ", range.split(), ":");
    if (range.ends_split()) {
      absl::StrAppend(&text, "end/", range.split_rows());
    } else {
      absl::StrAppend(&text, "[", range.from(), ",", range.to(), ")/", range.block_rows());
    }
    if (range.has_bad_records() || range.has_empty_lines()) {
      absl::StrAppend(&text, "+", range.bad_records(), "+", range.empty_lines());
    }
  }
  return text;
}

TEST_F(RecordBatchMakerTest, ProvenanceTellsCountsOfLinesAndEndsOfSplits) {
  JobConfig job = FileJob(dir_, 0);
  dir_.Write("data", "bad\n0,0\n0,1\nbad\n\n0,2\nbad\n0,3\n0,4\n0,5\nbad\nbad\n\n");
  dir_.Write("none", "bad\n");
  job.mutable_data()->add_train_files("none");
  job.mutable_data()->set_shuffle_rows(3);
  for (const JobConfig::Mode mode : {JobConfig::HYBRID, JobConfig::SYNC}) {
    job.set_mode(mode);
    const auto spec = Spec(job);
    const auto maker = NewRecordBatchMaker(spec);
    for (uint32_t e = 0; e < 2; ++e) {
      std::vector<std::string> provenance;
      for (const auto& batch : RunEpoch(*spec, maker.get(), e)) {
        for (const Part& part : batch) provenance.push_back(ProvenanceOf(part));
      }
      const std::vector<std::string> expected[] = {
          {"0:[0,3)/3+2+1 0:[0,1)/3+1+0", "0:[1,3)/3 0:end/6+2+1 1:end/0+1+0"},
          {"0:[0,3)/3 0:[0,1)/3", "0:[1,3)/3 0:end/6 1:end/0"}};
      EXPECT_EQ(provenance, expected[e]) << "epoch " << e;
    }
  }
}

TEST_F(RecordBatchMakerTest, LinesAfterTheLastRecordBelongToItsBlockUnlessThatIsFull) {
  JobConfig job = FileJob(dir_, 0);
  dir_.Write("data", "0,0\n0,1\nbad\n0,2\nbad\n");
  for (const auto& [shuffle_rows, expected] :
       {std::pair(3, "0:[0,3)/3+1+0 0:end/3+1+0"), std::pair(4, "0:[0,3)/3+2+0 0:end/3")}) {
    job.mutable_data()->set_shuffle_rows(shuffle_rows);
    const auto batches = Run(job).batches;
    ASSERT_EQ(batches.size(), 1u);
    EXPECT_EQ(ProvenanceOf(batches[0][0]), expected);
  }
}

TEST_F(RecordBatchMakerTest, EvaluationTellsNoEnds) {
  JobConfig job = FileJob(dir_, 3);
  job.mutable_data()->add_test_files("data");
  const Epoch epoch = Run(job, 0, TEST_STREAM);
  ASSERT_EQ(epoch.batches.size(), 1u);
  EXPECT_EQ(epoch.batches[0][0].header.part().provenance_size(), 1);
}

TEST_F(RecordBatchMakerTest, AFullBatchCarriesTheEndOfItsSplitIfItIsAfterIt) {
  const Epoch epoch = Run(FileJob(dir_, 8));
  ASSERT_EQ(epoch.batches.size(), 2u);
  EXPECT_TRUE(epoch.batches[1][0].header.part().provenance(1).ends_split());
}

TEST_F(RecordBatchMakerTest, AFileThatWentAwayIsAnError) {
  const JobConfig job = FileJob(dir_, 10);
  const auto spec = Spec(job);
  std::filesystem::remove(dir_.path() + "/data");
  const auto maker = NewRecordBatchMaker(spec);
  maker->BeginEpoch(0);
  maker->AddSplit(0);
  std::vector<Part> parts;
  EXPECT_EQ(maker->MakeBatch(&parts).status().code(), absl::StatusCode::kNotFound);
}

// One maker reads a good file, the other a file of three bad lines. max_bad_fraction is 0.2.
class TwoRecordBatchMakersTest : public testing::Test {
 protected:
  void Make(int good_rows) {
    JobConfig job = FileJob(dir_, good_rows);
    dir_.Write("tail", "bad\nbad\nbad\n");
    job.mutable_data()->add_train_files("tail");
    ReadProgress::Options options;
    options.max_bad_fraction = 0.2;
    progress_ = std::make_unique<ReadProgress>(options);
    spec_ = *StreamSpec::Make(job, TRAIN_STREAM, progress_.get());
    ASSERT_EQ(spec_->splits.size(), 2u);
    good_ = NewRecordBatchMaker(spec_);
    bad_ = NewRecordBatchMaker(spec_);
  }

  TempDir dir_;
  std::unique_ptr<ReadProgress> progress_;
  std::shared_ptr<const StreamSpec> spec_;
  std::unique_ptr<BatchMaker> good_;
  std::unique_ptr<BatchMaker> bad_;
};

TEST_F(TwoRecordBatchMakersTest, TheShareOfBadRecordsIsThatOfAllMakersTogether) {
  Make(50);
  // This maker reads only bad records and ends before the other begins. That must not be an error
  // yet. The batch of this maker carries the split's end.
  const auto ends = RunEpoch(*spec_, bad_.get(), 0, 1, 2);
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(ends[0][0].header.part().samples(), 0u);
  EXPECT_EQ(RunEpoch(*spec_, good_.get(), 0, 0, 2).size(), 13u);
  EXPECT_EQ(progress_->quarantined(), 3u);
  EXPECT_EQ(RunEpoch(*spec_, bad_.get(), 1, 1, 2).size(), 1u);
  EXPECT_EQ(progress_->quarantined(), 3u) << "counted in the first epoch only";
}

TEST_F(TwoRecordBatchMakersTest, TooManyBadRecordsAreAnErrorWhenTheLastMakerEnds) {
  Make(5);
  EXPECT_EQ(RunEpoch(*spec_, good_.get(), 0, 0, 2).size(), 2u);
  bad_->BeginEpoch(0);
  bad_->AddSplit(1);
  bad_->EndSplits();
  std::vector<Part> parts;
  EXPECT_EQ(*bad_->MakeBatch(&parts), BatchMaker::Result::kBatch) << "the split's end";
  EXPECT_EQ(bad_->MakeBatch(&parts).status().code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace satrap
