#include "common/checkpoint/order_fingerprint.h"

#include "gtest/gtest.h"

namespace satrap {
namespace {

JobConfig Job() {
  JobConfig job;
  job.set_mode(JobConfig::SYNC);
  job.set_seed(7);
  job.set_lanes(2);
  job.set_global_batch_size(64);
  job.mutable_data()->mutable_criteo_tsv();
  job.mutable_data()->add_train_files("day_*");
  job.mutable_data()->set_shuffle_rows(100);
  return job;
}

SplitList Files() {
  SplitList list;
  StreamFiles* train = list.add_streams();
  train->set_stream(0);
  for (const char* path : {"day_0", "day_1"}) {
    FileIdentity* file = train->add_files();
    file->set_path(path);
    file->set_bytes(100);
    file->set_content(train->files_size());
  }
  return list;
}

TEST(OrderFingerprintTest, ChangesWithTheItemsThatCandidatesAreDrawnFrom) {
  SplitList files = Files();
  const uint64_t without = OrderFingerprint(Job(), files);
  files.mutable_candidates()->set_path("items.tsv");
  files.mutable_candidates()->set_bytes(7);
  files.mutable_candidates()->set_content(1);
  const uint64_t with = OrderFingerprint(Job(), files);
  EXPECT_NE(with, without);
  files.mutable_candidates()->set_content(2);
  EXPECT_NE(OrderFingerprint(Job(), files), with);
}

TEST(OrderFingerprintTest, ChangesWithEverythingThatFixesTheOrderOfSamples) {
  const uint64_t fingerprint = OrderFingerprint(Job(), Files());
  EXPECT_EQ(OrderFingerprint(Job(), Files()), fingerprint);
  const auto differs = [&](const char* what, auto change) {
    JobConfig job = Job();
    SplitList files = Files();
    change(&job, files.mutable_streams(0));
    EXPECT_NE(OrderFingerprint(job, files), fingerprint) << what;
  };
  differs("mode", [](JobConfig* job, StreamFiles*) { job->set_mode(JobConfig::HYBRID); });
  differs("seed", [](JobConfig* job, StreamFiles*) { job->set_seed(8); });
  differs("lanes", [](JobConfig* job, StreamFiles*) { job->set_lanes(3); });
  differs("batch", [](JobConfig* job, StreamFiles*) { job->set_global_batch_size(65); });
  differs("blocks", [](JobConfig* job, StreamFiles*) { job->mutable_data()->set_shuffle_rows(9); });
  differs("splits", [](JobConfig* job, StreamFiles*) { job->mutable_data()->set_split_bytes(9); });
  differs("parser", [](JobConfig* job, StreamFiles*) { job->mutable_data()->mutable_libsvm(); });
  differs("filter", [](JobConfig* job, StreamFiles*) {
    job->mutable_data()->mutable_seeded_split()->set_valid_fraction(0.5);
  });
  differs("size", [](JobConfig*, StreamFiles* train) { train->mutable_files(1)->set_bytes(101); });
  differs("content",
          [](JobConfig*, StreamFiles* train) { train->mutable_files(0)->set_content(5); });
  differs("order",
          [](JobConfig*, StreamFiles* train) { train->mutable_files()->SwapElements(0, 1); });
  differs("number of files",
          [](JobConfig*, StreamFiles* train) { train->mutable_files()->RemoveLast(); });
  differs("stream", [](JobConfig*, StreamFiles* train) { train->set_stream(1); });
}

TEST(OrderFingerprintTest, IsThatOfAnotherSizeAndOfFilesThatMoved) {
  const uint64_t fingerprint = OrderFingerprint(Job(), Files());
  JobConfig job = Job();
  job.mutable_embedding_ps()->set_replicas(5);
  job.mutable_nn_worker()->set_replicas(3);
  job.mutable_data_loader()->set_replicas(2);
  job.set_data_root("/elsewhere");
  job.mutable_data()->set_train_files(0, "moved/day_*");
  job.mutable_data()->set_max_bad_fraction(0.5);
  SplitList files = Files();
  files.mutable_streams(0)->mutable_files(0)->set_path("moved/day_0");
  EXPECT_EQ(OrderFingerprint(job, files), fingerprint);
}

TEST(OrderFingerprintTest, OfAJobWithFilesIsThatOfEarlierBuilds) {
  EXPECT_EQ(OrderFingerprint(Job(), Files()), 2247851969813035662u);
}

JobConfig TopicJob() {
  JobConfig job = Job();
  job.mutable_data()->clear_train_files();
  KafkaConfig* kafka = job.mutable_data()->mutable_kafka();
  kafka->add_brokers("one:9092");
  kafka->add_topics("clicks");
  kafka->mutable_start()->set_at(KafkaStart::EARLIEST);
  kafka->mutable_end()->set_at(KafkaEnd::AT_START);
  *job.mutable_data()->mutable_valid_kafka() = *kafka;
  *job.mutable_data()->mutable_test_kafka() = *kafka;
  return job;
}

SplitList Partitions() {
  SplitList list;
  StreamTopics* train = list.add_topics();
  train->set_stream(0);
  train->set_cluster_id("K");
  for (int i = 0; i < 2; ++i) {
    TopicPartition* partition = train->add_partitions();
    partition->set_topic("clicks");
    partition->set_partition(i);
    partition->set_start(10);
    partition->set_end(90);
  }
  return list;
}

TEST(OrderFingerprintTest, ChangesWithTheMessagesOfBoundedTopicsAndHowTheyAreRead) {
  const uint64_t fingerprint = OrderFingerprint(TopicJob(), Partitions());
  const auto differs = [&](const char* what, auto change) {
    JobConfig job = TopicJob();
    SplitList list = Partitions();
    change(job.mutable_data(), list.mutable_topics(0));
    EXPECT_NE(OrderFingerprint(job, list), fingerprint) << what;
  };
  differs("topics",
          [](DataConfig* data, StreamTopics*) { data->mutable_kafka()->add_topics("x"); });
  differs("format", [](DataConfig* data, StreamTopics*) {
    data->mutable_kafka()->set_format(KafkaConfig::LINES);
  });
  differs("columns",
          [](DataConfig* data, StreamTopics*) { data->mutable_valid_kafka()->add_columns(); });
  differs("cluster", [](DataConfig*, StreamTopics* train) { train->set_cluster_id("L"); });
  differs("stream", [](DataConfig*, StreamTopics* train) { train->set_stream(1); });
  differs("topic",
          [](DataConfig*, StreamTopics* train) { train->mutable_partitions(0)->set_topic("x"); });
  differs("start",
          [](DataConfig*, StreamTopics* train) { train->mutable_partitions(0)->set_start(11); });
  differs("end",
          [](DataConfig*, StreamTopics* train) { train->mutable_partitions(1)->set_end(91); });
  differs("order", [](DataConfig*, StreamTopics* train) {
    train->mutable_partitions()->SwapElements(0, 1);
  });
  differs("number of partitions",
          [](DataConfig*, StreamTopics* train) { train->mutable_partitions()->RemoveLast(); });
}

TEST(OrderFingerprintTest, DoesNotChangeWithTheWayToTheClusterAndItsLimits) {
  const uint64_t fingerprint = OrderFingerprint(TopicJob(), Partitions());
  JobConfig job = TopicJob();
  DataConfig* data = job.mutable_data();
  for (KafkaConfig* kafka :
       {data->mutable_kafka(), data->mutable_valid_kafka(), data->mutable_test_kafka()}) {
    kafka->set_brokers(0, "two:9092");
    kafka->add_settings()->set_name("security.protocol");
    kafka->set_group_id("other");
    kafka->set_queue_bytes(1);
    kafka->set_max_wait_ms(7);
    kafka->set_allowed_lateness_ms(8);
    kafka->set_dead_letter_topic("dead");
    kafka->set_on_lost_offsets(KafkaConfig::SKIP);
    kafka->set_broker_wait_seconds(9);
  }
  EXPECT_EQ(OrderFingerprint(job, Partitions()), fingerprint);
}

TEST(OrderFingerprintTest, IsTheSameWhenPartitionsAreAddedToATopicThatNeverEnds) {
  JobConfig job = TopicJob();
  job.mutable_data()->mutable_kafka()->mutable_end()->set_at(KafkaEnd::NEVER);
  SplitList list = Partitions();
  for (TopicPartition& partition : *list.mutable_topics(0)->mutable_partitions()) {
    partition.clear_end();
  }
  const uint64_t fingerprint = OrderFingerprint(job, list);
  EXPECT_NE(fingerprint, OrderFingerprint(TopicJob(), Partitions()));
  TopicPartition* added = list.mutable_topics(0)->add_partitions();
  added->set_topic("clicks");
  added->set_partition(2);
  EXPECT_EQ(OrderFingerprint(job, list), fingerprint);
}

}  // namespace
}  // namespace satrap
