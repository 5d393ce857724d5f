#include "data_loader/loader_streams.h"

#include <gtest/gtest.h>

#include <set>

#include "common/testing/manual_executor.h"
#include "common/testing/temp_dir.h"

namespace satrap {
namespace {

JobConfig Job() {
  JobConfig job;
  SyntheticFormat* synthetic = job.mutable_data()->mutable_synthetic();
  synthetic->set_train_samples(100);
  synthetic->set_valid_samples(20);
  synthetic->set_test_samples(20);
  synthetic->add_vocabulary_sizes(10);
  synthetic->set_interacting_features(0);
  job.mutable_data()->add_features()->set_name("C1");
  job.mutable_data()->set_split_rows(10);
  job.set_global_batch_size(10);
  job.set_lanes(3);
  job.set_epochs(2);
  job.mutable_data_loader()->set_replicas(2);
  return job;
}

std::unique_ptr<LoaderStreams> Make(const JobConfig& job, int index) {
  auto streams = LoaderStreams::Make(job, index, nullptr);
  EXPECT_TRUE(streams.ok()) << streams.status();
  return *std::move(streams);
}

TEST(LoaderStreamsTest, SyncDealsLanesToLoaders) {
  JobConfig job = Job();
  job.set_mode(JobConfig::SYNC);
  ManualExecutor executor;
  std::multiset<uint32_t> records_of_lane;
  for (int index = 0; index < 2; ++index) {
    const auto streams = Make(job, index);
    EXPECT_FALSE(streams->needs_lease());
    streams->MakeSources(&executor, nullptr);
    ASSERT_EQ(streams->sources().size(), 3u);
    const LoaderEngine::StreamSources& train = streams->sources()[0];
    EXPECT_TRUE(train.ordered);
    EXPECT_EQ(train.epochs, 2u);
    EXPECT_EQ(train.sources.size(), index == 0 ? 2u : 1u);
    for (PartSource* source : train.sources) {
      bool more = true;
      while (more) {
        source->Next([&](absl::StatusOr<absl::optional<Part>> part) {
          more = part->has_value();
          if (!more) return;
          const PartDescription& description = (*part)->header.part();
          EXPECT_EQ(description.id().lane() % 2, static_cast<uint32_t>(index));
          for (const ProvenanceRange& range : description.provenance()) {
            EXPECT_EQ(range.split() % 3, description.id().lane());
          }
          records_of_lane.insert(description.id().lane());
        });
        executor.RunReady();
      }
    }
  }
  EXPECT_EQ(records_of_lane.count(0), 4u);  // splits 0, 3, 6, 9
  EXPECT_EQ(records_of_lane.count(1), 3u);
  EXPECT_EQ(records_of_lane.count(2), 3u);
}

TEST(LoaderStreamsTest, HybridLeasesTrainAndDealsTheOtherStreams) {
  const auto streams = Make(Job(), 1);
  EXPECT_TRUE(streams->needs_lease());
  EXPECT_EQ(streams->num_train_splits(), 10u);
  ManualExecutor executor;
  StaticSplits lease(0, 1, 10);
  streams->MakeSources(&executor, &lease);
  ASSERT_EQ(streams->sources().size(), 3u);
  EXPECT_FALSE(streams->sources()[0].ordered);
  EXPECT_EQ(streams->sources()[1].epochs, 0u);
  EXPECT_EQ(streams->Progress().expected_train_samples(), 100u);
}

TEST(LoaderStreamsTest, AnEvaluationReadsTheTestStreamOnly) {
  JobConfig job = Job();
  job.set_action(JobConfig::EVALUATE);
  const auto streams = Make(job, 0);
  EXPECT_EQ(streams->num_train_splits(), 0u);
  ManualExecutor executor;
  streams->MakeSources(&executor, nullptr);
  ASSERT_EQ(streams->sources().size(), 1u);
  EXPECT_EQ(streams->sources()[0].stream, TEST_STREAM);
}

TEST(LoaderStreamsTest, RecordsThatTheLossDoesNotTakeAreLeftOutAndToldOf) {
  TempDir dir;
  dir.Write("train.csv", "1,0\n-1,1\n0,1e22\n0,3\n");
  JobConfig job;
  job.set_mode(JobConfig::SYNC);
  job.set_lanes(1);
  job.set_global_batch_size(10);
  job.set_data_root(dir.path());
  job.mutable_data()->set_max_bad_fraction(1);
  job.mutable_data()->set_record_rules(1);
  job.mutable_data()->add_train_files("train.csv");
  for (const char* name : {"y", "x"})
    job.mutable_data()->mutable_csv()->add_columns()->set_name(name);
  job.mutable_data()->mutable_csv()->mutable_columns(0)->set_kind(ColumnConfig::LABEL);
  job.mutable_data()->mutable_csv()->mutable_columns(0)->set_numeric_label(true);
  job.mutable_data()->mutable_csv()->mutable_columns(1)->set_kind(ColumnConfig::NUMERIC);
  job.mutable_data()->add_numerics()->set_name("x");
  const auto streams = Make(job, 0);
  ManualExecutor executor;
  streams->MakeSources(&executor, nullptr);
  uint32_t samples = 0;
  streams->sources()[0].sources[0]->Next([&](absl::StatusOr<absl::optional<Part>> part) {
    samples = (*part)->header.part().samples();
  });
  executor.RunReady();
  EXPECT_EQ(samples, 2u);
  const LoaderProgress progress = streams->Progress();
  EXPECT_EQ(progress.quarantined(), 2u);
  EXPECT_EQ(progress.warnings_size(), 2);
  EXPECT_EQ(progress.labels(0).count(), 2u);
}

TEST(LoaderStreamsTest, MissingFilesAreFoundBeforeAnythingRuns) {
  TempDir dir;
  JobConfig job;
  job.mutable_data()->mutable_criteo_tsv();
  job.set_data_root(dir.path());
  job.mutable_data()->add_train_files("*.tsv");
  EXPECT_EQ(LoaderStreams::Make(job, 0, nullptr).status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace satrap
