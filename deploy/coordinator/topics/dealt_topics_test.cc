#include "deploy/coordinator/topics/dealt_topics.h"

#include "absl/types/optional.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using ::testing::ElementsAre;

JobConfig Job(JobConfig::Mode mode, int loaders, int lanes = 1) {
  JobConfig job;
  job.set_mode(mode);
  job.set_lanes(lanes);
  job.mutable_data_loader()->set_replicas(loaders);
  return job;
}

StreamTopics Partitions(int from, int to, absl::optional<uint64_t> end = absl::nullopt) {
  StreamTopics topics;
  topics.set_cluster_id("cluster-a");
  for (int i = from; i < to; ++i) {
    TopicPartition* partition = topics.add_partitions();
    partition->set_topic("clicks");
    partition->set_partition(i);
    partition->set_start(100);
    if (end.has_value()) partition->set_end(*end);
  }
  return topics;
}

// The loaders of all partitions, as the status shows them.
std::vector<uint32_t> Loaders(const DealtTopics& topics) {
  StatusAnswer answer;
  topics.AddTo(0, &answer);
  std::vector<uint32_t> loaders;
  for (const auto& partition : answer.topics().partitions()) loaders.push_back(partition.loader());
  return loaders;
}

TEST(DealtTopicsTest, HybridDealsTheFirstPartitionsInTurn) {
  DealtTopics topics(Job(JobConfig::HYBRID, 2));
  topics.Begin(Partitions(0, 5));
  EXPECT_THAT(Loaders(topics), ElementsAre(0, 1, 0, 1, 0));
}

TEST(DealtTopicsTest, SyncDealsThemToTheLoaderOfTheirLane) {
  DealtTopics topics(Job(JobConfig::SYNC, 2, 3));
  topics.Begin(Partitions(0, 7));
  EXPECT_THAT(Loaders(topics), ElementsAre(0, 1, 0, 0, 1, 0, 0));
}

TEST(DealtTopicsTest, NewPartitionsGoToTheLoaderWithTheFewest) {
  DealtTopics topics(Job(JobConfig::HYBRID, 3));
  topics.Begin(Partitions(0, 4));
  topics.Add(Partitions(4, 7));
  topics.Add(Partitions(7, 8));
  EXPECT_THAT(Loaders(topics), ElementsAre(0, 1, 2, 0, 1, 2, 0, 1));
}

TEST(DealtTopicsTest, OnlyNewPartitionsThatALoaderDoesNotKnowAreTold) {
  DealtTopics topics(Job(JobConfig::HYBRID, 2));
  topics.Begin(Partitions(0, 3));
  topics.Add(Partitions(3, 6));
  for (const uint32_t known : {0, 3, 4, 6, 7}) {
    HeartbeatAnswer answer;
    topics.AddTo(known, &answer);
    const uint32_t first = std::max(known, 3u);
    ASSERT_EQ(answer.dealt_size(), first < 6 ? static_cast<int>(6 - first) : 0) << known;
    if (answer.dealt_size() == 0) continue;
    EXPECT_EQ(answer.dealt(0).split(), first);
    EXPECT_EQ(answer.dealt(0).partition().partition(), static_cast<int>(first));
    EXPECT_EQ(answer.dealt(0).loader(), Loaders(topics)[first]);
  }
}

PartitionProgress Progress(uint32_t split, uint64_t next, uint64_t end, int64_t next_time_ms) {
  PartitionProgress progress;
  progress.set_split(split);
  progress.set_next_offset(next);
  progress.set_end_offset(end);
  progress.set_next_time_ms(next_time_ms);
  return progress;
}

TEST(DealtTopicsTest, TheLagIsOfAllPartitionsAndOfTheOneThatIsFurthestBehind) {
  DealtTopics topics(Job(JobConfig::HYBRID, 2));
  topics.Begin(Partitions(0, 4, /*end=*/1000));
  StatusAnswer answer;
  topics.AddTo(10000, &answer);
  EXPECT_FALSE(answer.topics().has_lag_messages()) << "nobody has told anything yet";
  LoaderProgress* loader = answer.add_roles()->mutable_loader();
  *loader->add_partitions() = Progress(0, 150, 200, 4000);
  *loader->add_partitions() = Progress(2, 900, 5000, 9000);  // the run reads only up to 1000
  loader = answer.add_roles()->mutable_loader();
  *loader->add_partitions() = Progress(1, 300, 300, 1000);
  answer.clear_topics();
  topics.AddTo(10000, &answer);
  EXPECT_EQ(answer.topics().lag_messages(), 150u);
  EXPECT_EQ(answer.topics().lag_seconds(), 6) << "a partition that is read up to its end has none";
  EXPECT_EQ(answer.topics().partitions(2).progress().next_offset(), 900u);
  EXPECT_FALSE(answer.topics().partitions(3).has_progress());
  EXPECT_EQ(answer.topics().cluster_id(), "cluster-a");
}

TEST(DealtTopicsTest, CountsOfLoadersAreAddedAndTheLeastWatermarkIsTheRuns) {
  DealtTopics topics(Job(JobConfig::HYBRID, 3));
  topics.Begin(Partitions(0, 3));
  StatusAnswer answer;
  for (const int64_t watermark : {7000, 5000, 0}) {
    LoaderProgress* loader = answer.add_roles()->mutable_loader();
    loader->set_late_records(1);
    loader->set_dead_letters(2);
    loader->set_lost_messages(3);
    if (watermark > 0) loader->set_watermark_ms(watermark);
  }
  topics.AddTo(10000, &answer);
  EXPECT_EQ(answer.topics().watermark_ms(), 5000);
  EXPECT_EQ(answer.topics().late_records(), 3u);
  EXPECT_EQ(answer.topics().dead_letters(), 6u);
  EXPECT_EQ(answer.topics().lost_messages(), 9u);
}

class ConsumedOffsetsTest : public testing::Test {
 protected:
  // Adds to the ledger a whole block in which each message has one record.
  void Consume(uint32_t split, uint64_t first, uint64_t end, uint32_t epoch = 0) {
    ProvenanceRange range;
    range.set_split(split);
    range.set_block(first);
    range.set_block_end(end);
    range.set_to(static_cast<uint32_t>(end - first));
    range.set_records(static_cast<uint32_t>(end - first));
    range.set_last_offset(end - 1);
    range.set_last_hash(7);
    const absl::Status added = ledger_.Add(epoch, range);
    ASSERT_TRUE(added.ok()) << added;
  }
  void End(uint32_t split, uint64_t end) {
    ProvenanceRange range;
    range.set_split(split);
    range.set_block(100);
    range.set_block_end(end);
    range.set_ends_split(true);
    ASSERT_TRUE(ledger_.Add(0, range).ok());
  }

  RunPosition position_;
  Ledger ledger_;
};

TEST_F(ConsumedOffsetsTest, AreContiguousFromTheStart) {
  Consume(0, 100, 150);
  Consume(0, 160, 200);
  Consume(1, 120, 140);
  EXPECT_THAT(ConsumedOffsets(Partitions(0, 3), position_, ledger_), ElementsAre(150, 100, 100));
}

TEST_F(ConsumedOffsetsTest, APartitionThatIsDoneEndsAtItsEnd) {
  Consume(0, 100, 150);
  for (const uint32_t split : {1, 2}) {
    Consume(split, 100, 500);
    End(split, 500);
  }
  EXPECT_THAT(ConsumedOffsets(Partitions(0, 3, 500), position_, ledger_),
              ElementsAre(150, 500, 500));
}

TEST_F(ConsumedOffsetsTest, LaterEpochsReadAgainWhatIsConsumed) {
  position_.set_epoch(1);
  Consume(0, 100, 150, /*epoch=*/1);
  EXPECT_THAT(ConsumedOffsets(Partitions(0, 2, 500), position_, ledger_), ElementsAre(500, 500));
}

TEST_F(ConsumedOffsetsTest, WithoutALedgerTheyAreTheStarts) {
  const std::vector<uint64_t> offsets = ConsumedOffsets(Partitions(0, 2), RunPosition(), ledger_);
  EXPECT_THAT(offsets, ElementsAre(100, 100));
  const std::vector<KafkaPlace> places = PlacesOf(Partitions(0, 2), offsets);
  ASSERT_EQ(places.size(), 2u);
  EXPECT_EQ(places[1].partition.ToString(), "clicks/1");
  EXPECT_EQ(places[1].offset, 100);
}

}  // namespace
}  // namespace satrap
