#include "deploy/coordinator/topics/topic_resolution.h"

#include "common/config/testing/validation_check.h"
#include "deploy/coordinator/topics/testing/fake_topic_source.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kNowMs = 1800000000000;  // 2027-01-15T08:00:00Z

class TopicResolutionTest : public testing::Test {
 protected:
  TopicResolutionTest() {
    config_.add_brokers("b:9092");
    config_.add_topics("clicks");
    source_.partitions[{"clicks", 0}] = {10, 100, {{kNowMs - 5000, 40}}};
    source_.partitions[{"clicks", 1}] = {0, 7, {}};
    source_.partitions[{"views", 0}] = {0, 3, {}};
  }
  TopicInput TheStream() const {
    return {stream_, "data.kafka", config_, {config_.dead_letter_topic()}};
  }
  absl::StatusOr<ResolvedTopics> Resolve() {
    return ResolveTopics(job_, TheStream(), kNowMs, &source_);
  }
  std::vector<uint64_t> Starts() {
    const auto resolved = Resolve();
    EXPECT_TRUE(resolved.ok()) << resolved.status();
    std::vector<uint64_t> starts;
    if (!resolved.ok()) return starts;
    for (const auto& partition : resolved->topics.partitions()) starts.push_back(partition.start());
    return starts;
  }
  std::vector<uint64_t> Ends() {
    const auto resolved = Resolve();
    EXPECT_TRUE(resolved.ok()) << resolved.status();
    std::vector<uint64_t> ends;
    if (!resolved.ok()) return ends;
    for (const auto& partition : resolved->topics.partitions()) {
      if (partition.has_end()) ends.push_back(partition.end());
    }
    return ends;
  }
  // "CODE: message"
  std::string Error() { return Resolve().status().ToString(); }
  template <typename Place>
  static void Add(const std::string& topic, int32_t partition, int64_t offset, Place* place) {
    KafkaOffset* added = place->add_offsets();
    added->set_topic(topic);
    added->set_partition(partition);
    added->set_offset(offset);
  }

  Stream stream_ = TRAIN_STREAM;
  JobConfig job_ = SmallJob();
  KafkaConfig config_;
  FakeTopicSource source_;
};

TEST_F(TopicResolutionTest, WithoutStartAndEndAllMessagesAreReadForEver) {
  const auto resolved = Resolve();
  ASSERT_TRUE(resolved.ok()) << resolved.status();
  EXPECT_EQ(resolved->topics.stream(), TRAIN_STREAM);
  EXPECT_EQ(resolved->topics.cluster_id(), "cluster-a");
  EXPECT_EQ(PartitionNames(resolved->topics), "clicks/0, clicks/1");
  EXPECT_THAT(Starts(), ElementsAre(10, 0));
  EXPECT_THAT(Ends(), ElementsAre());
  EXPECT_TRUE(IsEndless(TheStream()));
}

TEST_F(TopicResolutionTest, AnEvaluationStreamEndsWhereItsTopicEndsNow) {
  stream_ = VALID_STREAM;
  EXPECT_THAT(Ends(), ElementsAre(100, 7));
  EXPECT_FALSE(IsEndless(TheStream()));
}

TEST_F(TopicResolutionTest, TopicsOfAPatternAreReadToo) {
  config_.set_topic_pattern("v*");
  EXPECT_EQ(PartitionNames(Resolve()->topics), "clicks/0, clicks/1, views/0");
}

TEST_F(TopicResolutionTest, EachStartBecomesOffsets) {
  config_.mutable_start()->set_at(KafkaStart::EARLIEST);
  EXPECT_THAT(Starts(), ElementsAre(10, 0));
  config_.mutable_start()->set_at(KafkaStart::LATEST);
  EXPECT_THAT(Starts(), ElementsAre(100, 7));
  config_.mutable_start()->set_at(KafkaStart::GROUP);
  source_.committed[{"clicks", 0}] = 60;
  EXPECT_THAT(Starts(), ElementsAre(60, 0)) << "EARLIEST where the group has committed nothing";
  config_.mutable_start()->Clear();
  config_.mutable_start()->set_time("2027-01-15T07:59:54Z");
  EXPECT_THAT(Starts(), ElementsAre(40, 7)) << "all messages of the second one are older";
  config_.mutable_start()->Clear();
  Add("clicks", 1, 3, config_.mutable_start());
  Add("clicks", 0, 99, config_.mutable_start());
  EXPECT_THAT(Starts(), ElementsAre(99, 3));
}

TEST_F(TopicResolutionTest, EachEndBecomesOffsets) {
  config_.mutable_end()->set_at(KafkaEnd::NEVER);
  EXPECT_THAT(Ends(), ElementsAre());
  config_.mutable_end()->set_at(KafkaEnd::AT_START);
  EXPECT_THAT(Ends(), ElementsAre(100, 7));
  config_.mutable_end()->Clear();
  config_.mutable_end()->set_time("2027-01-15T07:59:54.5Z");
  EXPECT_THAT(Ends(), ElementsAre(40, 7));
  config_.mutable_end()->Clear();
  Add("clicks", 0, 20, config_.mutable_end());
  Add("clicks", 1, 5, config_.mutable_end());
  EXPECT_THAT(Ends(), ElementsAre(20, 5));
}

TEST_F(TopicResolutionTest, AnEndMayBeYetToComeUnlessTheRunIsToBeReproducible) {
  Add("clicks", 0, 20, config_.mutable_end());
  Add("clicks", 1, 500, config_.mutable_end());
  EXPECT_THAT(Ends(), ElementsAre(20, 500));
  job_.set_mode(JobConfig::SYNC);
  job_.set_reproducible(true);
  EXPECT_THAT(Error(), AllOf(HasSubstr("INVALID_ARGUMENT"), HasSubstr("data.kafka.end.offsets"),
                             HasSubstr("clicks/1 ends at 7, before offset 500")));
}

TEST_F(TopicResolutionTest, ALaneThatNeverSendsAnEmptyBatchMustNotWaitForMessages) {
  Add("clicks", 0, 20, config_.mutable_end());
  Add("clicks", 1, 8, config_.mutable_end());
  job_.set_mode(JobConfig::SYNC);
  EXPECT_THAT(Ends(), ElementsAre(20, 8));
  config_.set_max_wait_ms(0);
  EXPECT_THAT(Error(),
              AllOf(HasSubstr("INVALID_ARGUMENT"), HasSubstr("data.kafka.end.offsets"),
                    HasSubstr("max_wait_ms 0"), HasSubstr("clicks/1 ends at 7, before offset 8")));
  config_.mutable_end()->mutable_offsets(1)->set_offset(7);
  EXPECT_THAT(Ends(), ElementsAre(20, 7));
  config_.mutable_end()->mutable_offsets(1)->set_offset(8);
  job_.set_mode(JobConfig::HYBRID);
  EXPECT_THAT(Ends(), ElementsAre(20, 8));
}

TEST_F(TopicResolutionTest, TheEndOfAnEvaluationIsWritten) {
  Add("clicks", 0, 20, config_.mutable_end());
  Add("clicks", 1, 8, config_.mutable_end());
  for (const Stream stream : {VALID_STREAM, TEST_STREAM}) {
    stream_ = stream;
    EXPECT_THAT(Error(), AllOf(HasSubstr("INVALID_ARGUMENT"), HasSubstr("end.offsets"),
                               HasSubstr("an evaluation"),
                               HasSubstr("clicks/1 ends at 7, before offset 8")));
  }
  config_.mutable_end()->mutable_offsets(1)->set_offset(7);
  EXPECT_THAT(Ends(), ElementsAre(20, 7));
}

TEST_F(TopicResolutionTest, AStartThatMovesWhileItIsAskedForIsNotAfterTheEnd) {
  // After each question, the group commits and the writers add messages, so later answers have
  // larger offsets.
  source_.after = [this](const std::string&) {
    for (auto& [name, partition] : source_.partitions) {
      partition.latest += 10;
      source_.committed[name] = partition.latest;
    }
  };
  source_.committed[{"clicks", 0}] = 100;
  source_.committed[{"clicks", 1}] = 7;
  config_.mutable_start()->set_at(KafkaStart::GROUP);
  EXPECT_THAT(Starts(), ElementsAre(100, 7));
  source_.partitions[{"clicks", 0}].latest = 100;
  source_.partitions[{"clicks", 1}].latest = 7;
  config_.mutable_start()->Clear();
  config_.mutable_start()->set_time("2027-01-15T08:00:00Z");
  EXPECT_THAT(Starts(), ElementsAre(100, 7));
  config_.mutable_start()->Clear();
  config_.mutable_start()->set_at(KafkaStart::LATEST);
  config_.mutable_end()->set_time("2027-01-15T08:00:00Z");
  EXPECT_TRUE(Resolve().ok()) << "the end is not before the start: " << Error();
}

TEST_F(TopicResolutionTest, ADeadLetterTopicThatDoesNotExistIsNamedWhenAGenerationBegins) {
  const StreamTopics known = Resolve()->topics;
  config_.set_dead_letter_topic("clicks-bad");
  const auto named = AllOf(HasSubstr("NOT_FOUND"), HasSubstr("data.kafka.dead_letter_topic: "),
                           HasSubstr("there is no topic clicks-bad"));
  EXPECT_THAT(Error(), named);
  EXPECT_THAT(CheckTopics(TheStream(), known, &source_).ToString(), named);
  source_.partitions[{"clicks-bad", 0}] = {0, 0, {}};
  EXPECT_EQ(PartitionNames(Resolve()->topics), "clicks/0, clicks/1");
  EXPECT_TRUE(CheckTopics(TheStream(), known, &source_).ok());
}

TEST_F(TopicResolutionTest, DeadLettersOfAnyStreamAreNoInputOfAPattern) {
  config_.clear_topics();
  config_.set_topic_pattern("clicks*");
  *job_.mutable_data()->mutable_kafka() = config_;
  KafkaConfig* const valid = job_.mutable_data()->mutable_valid_kafka();
  *valid = config_;
  valid->set_dead_letter_topic("clicks-bad");
  const TopicInput train = TopicInputsOf(job_)[0];
  source_.partitions[{"clicks-bad", 0}] = {0, 5, {}};
  const auto resolved = ResolveTopics(job_, train, kNowMs, &source_);
  ASSERT_TRUE(resolved.ok()) << resolved.status();
  EXPECT_EQ(PartitionNames(resolved->topics), "clicks/0, clicks/1");
  source_.partitions[{"clicks-bad", 1}] = {0, 5, {}};
  EXPECT_EQ(FindNewPartitions(train, resolved->topics, &source_)->partitions_size(), 0);
  // A topic that the job names is read even though it is a topic for dead letters.
  job_.mutable_data()->mutable_kafka()->add_topics("clicks-bad");
  EXPECT_EQ(PartitionNames(ResolveTopics(job_, TopicInputsOf(job_)[0], kNowMs, &source_)->topics),
            "clicks/0, clicks/1, clicks-bad/0, clicks-bad/1");
  job_.mutable_data()->mutable_kafka()->clear_topics();
  job_.mutable_data()->mutable_kafka()->set_topic_pattern("*bad");
  EXPECT_THAT(
      ResolveTopics(job_, TopicInputsOf(job_)[0], kNowMs, &source_).status().ToString(),
      AllOf(HasSubstr("NOT_FOUND"), HasSubstr("*bad matches only topics that take dead letters")));
}

TEST_F(TopicResolutionTest, AStartThatHasExpiredIsNamedWithWhatTheBrokerHas) {
  Add("clicks", 0, 4, config_.mutable_start());
  Add("clicks", 1, 0, config_.mutable_start());
  EXPECT_THAT(Error(), AllOf(HasSubstr("OUT_OF_RANGE"), HasSubstr("offset 4 of clicks/0"),
                             HasSubstr("the broker still has is 10"), HasSubstr("SKIP")));
}

TEST_F(TopicResolutionTest, AStartThatHasExpiredIsSkippedIfTheJobSaysSo) {
  config_.mutable_start()->set_at(KafkaStart::GROUP);
  source_.committed[{"clicks", 0}] = 4;
  config_.set_on_lost_offsets(KafkaConfig::SKIP);
  EXPECT_THAT(Starts(), ElementsAre(10, 0));
  EXPECT_THAT(Resolve()->warnings,
              ElementsAre(AllOf(HasSubstr("offset 4 of clicks/0"), HasSubstr("is 10"))));
}

TEST_F(TopicResolutionTest, AStartAfterThePartitionsEndIsNamed) {
  config_.set_on_lost_offsets(KafkaConfig::SKIP);
  config_.mutable_start()->set_at(KafkaStart::GROUP);
  source_.committed[{"clicks", 1}] = 8;
  EXPECT_THAT(Error(), AllOf(HasSubstr("OUT_OF_RANGE"), HasSubstr("offset 8 of clicks/1"),
                             HasSubstr("ends at 7")));
}

TEST_F(TopicResolutionTest, AnEndBeforeTheStartIsNamed) {
  config_.mutable_start()->set_at(KafkaStart::LATEST);
  Add("clicks", 0, 100, config_.mutable_end());
  Add("clicks", 1, 5, config_.mutable_end());
  EXPECT_THAT(Error(),
              AllOf(HasSubstr("INVALID_ARGUMENT"), HasSubstr("data.kafka.end"),
                    HasSubstr("clicks/1 would end at offset 5"), HasSubstr("start at offset 7")));
}

TEST_F(TopicResolutionTest, OffsetsAreOneForEachPartition) {
  Add("clicks", 1, 3, config_.mutable_start());
  EXPECT_THAT(Error(), AllOf(HasSubstr("data.kafka.start.offsets"), HasSubstr("clicks/0")));
  Add("clicks", 0, 10, config_.mutable_start());
  Add("clicks", 2, 0, config_.mutable_start());
  EXPECT_THAT(Error(), AllOf(HasSubstr("no clicks/2"), HasSubstr("clicks/0, clicks/1")));
  config_.mutable_start()->mutable_offsets(2)->set_partition(1);
  EXPECT_THAT(Error(), HasSubstr("clicks/1 twice"));
}

TEST_F(TopicResolutionTest, ATimeThatIsYetToComeHasNoOffset) {
  config_.mutable_start()->set_time("2027-01-15T08:00:01Z");
  EXPECT_THAT(Error(), AllOf(HasSubstr("INVALID_ARGUMENT"), HasSubstr("data.kafka.start.time"),
                             HasSubstr("2027-01-15T08:00:01Z is yet to come")));
  config_.mutable_start()->Clear();
  config_.mutable_end()->set_time("2027-01-16T08:00:00+02:00");
  EXPECT_THAT(Error(), HasSubstr("data.kafka.end.time"));
}

TEST_F(TopicResolutionTest, SyncNeedsAPartitionForEachLane) {
  job_.set_mode(JobConfig::SYNC);
  job_.set_lanes(2);
  EXPECT_TRUE(Resolve().ok());
  job_.set_lanes(3);
  EXPECT_THAT(Error(), AllOf(HasSubstr("INVALID_ARGUMENT"), HasSubstr("lanes"),
                             HasSubstr("2 (clicks/0, clicks/1), got 3")));
  stream_ = VALID_STREAM;
  EXPECT_TRUE(Resolve().ok()) << "only lanes of the train stream are ordered";
}

TEST_F(TopicResolutionTest, AnotherClusterIsNamedWithItsAddress) {
  const StreamTopics known = Resolve()->topics;
  EXPECT_TRUE(CheckTopics(TheStream(), known, &source_).ok());
  source_.cluster_id = "cluster-b";
  const absl::Status status = CheckTopics(TheStream(), known, &source_);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("cluster-a"), HasSubstr("cluster-b"), HasSubstr("b:9092")));
}

TEST_F(TopicResolutionTest, PartitionsThatAreGoneAreNamed) {
  config_.set_topic_pattern("v*");
  const StreamTopics known = Resolve()->topics;
  source_.partitions.erase({"clicks", 1});
  source_.partitions.erase({"views", 0});
  const absl::Status status = CheckTopics(TheStream(), known, &source_);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("the run reads clicks/1, views/0, which"));
}

TEST_F(TopicResolutionTest, NewPartitionsAreReadFromTheirFirstMessageWhateverStartSays) {
  config_.set_topic_pattern("v*");
  config_.mutable_start()->set_at(KafkaStart::LATEST);
  const StreamTopics known = Resolve()->topics;
  EXPECT_EQ(FindNewPartitions(TheStream(), known, &source_)->partitions_size(), 0);
  source_.partitions[{"visits", 0}] = {2, 9, {}};
  source_.partitions[{"clicks", 2}] = {0, 5, {}};
  source_.partitions.erase({"views", 0});
  const auto added = FindNewPartitions(TheStream(), known, &source_);
  ASSERT_TRUE(added.ok()) << added.status();
  EXPECT_EQ(PartitionNames(*added), "clicks/2, visits/0");
  EXPECT_EQ(added->partitions(0).start(), 0u);
  EXPECT_EQ(added->partitions(1).start(), 2u);
  EXPECT_FALSE(added->partitions(1).has_end());
}

TEST_F(TopicResolutionTest, AJobReadsTheTopicsOfItsActionAndOfNoStreamThatHasFiles) {
  const auto paths = [this] {
    std::vector<std::string> found;
    for (const TopicInput& stream : TopicInputsOf(job_)) found.push_back(stream.path);
    return found;
  };
  *job_.mutable_data()->mutable_kafka() = config_;
  *job_.mutable_data()->mutable_valid_kafka() = config_;
  *job_.mutable_data()->mutable_test_kafka() = config_;
  EXPECT_THAT(paths(), ElementsAre("data.kafka", "data.valid_kafka", "data.test_kafka"));
  job_.mutable_data()->add_valid_files("day_6");
  EXPECT_THAT(paths(), ElementsAre("data.kafka", "data.test_kafka"));
  job_.set_action(JobConfig::EVALUATE);
  EXPECT_THAT(paths(), ElementsAre("data.test_kafka"));
  job_.mutable_data()->add_test_files("day_7");
  EXPECT_THAT(paths(), ElementsAre());
}

TEST_F(TopicResolutionTest, AStreamIsResolvedOnceAndCheckedAfterwards) {
  *job_.mutable_data()->mutable_kafka() = config_;
  const auto first = FindTopics(job_, {}, kNowMs, &source_);
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_EQ(first->added.topics_size(), 1);
  const std::vector<StreamTopics> known = {first->added.topics(0)};
  const auto second = FindTopics(job_, known, kNowMs, &source_);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(second->added.topics_size(), 0);
  source_.cluster_id = "cluster-b";
  EXPECT_FALSE(FindTopics(job_, known, kNowMs, &source_).ok());
}

}  // namespace
}  // namespace satrap
