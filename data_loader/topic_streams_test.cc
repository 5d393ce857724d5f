// Tests how topic loaders close blocks and batches, take turns, send dead letters, and grow.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/testing/temp_dir.h"
#include "data_loader/testing/topic_loader_testing.h"

namespace satrap {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class TopicStreamsTest : public TopicLoaderTest {
 protected:
  // A job for one rank with batches of 8.
  JobConfig SmallJob(JobConfig::Mode mode) const {
    JobConfig job = Job(mode);
    job.mutable_nn_worker()->set_replicas(1);
    return job;
  }
  void WriteNumbers(int partition, int from, int to) {
    for (int i = from; i < to; ++i) topics_.Write({"clicks", partition}, absl::StrCat("1,", i));
  }
  static SplitList EndlessPartitions(int count) {
    SplitList list;
    list.add_topics()->set_stream(TRAIN_STREAM);
    for (int p = 0; p < count; ++p) *list.mutable_topics(0)->add_partitions() = PartitionOf(p);
    return list;
  }
  static TopicPartition PartitionOf(int number) {
    TopicPartition partition;
    partition.set_topic("clicks");
    partition.set_partition(number);
    partition.set_start(0);
    return partition;
  }
  // Requests the next part, and expects to get it.
  Part Next(LoaderStreams* streams, size_t source = 0) {
    auto part = NextPart(streams->sources()[0].sources[source]);
    EXPECT_TRUE(part.ok()) << part.status();
    EXPECT_TRUE(part.ok() && part->has_value());
    return part.ok() && part->has_value() ? **std::move(part) : Part();
  }
  static std::vector<float> Sorted(std::vector<float> numbers) {
    std::sort(numbers.begin(), numbers.end());
    return numbers;
  }
};

TEST_F(TopicStreamsTest, AQuietTopicIsTrainedWhenItsFirstMessageHasWaited) {
  WriteNumbers(0, 0, 3);
  const SplitList partitions = EndlessPartitions(1);
  const auto streams = Begin(SmallJob(JobConfig::HYBRID), partitions);
  const int64_t begin_ms = topics_.now_ms;
  const Part part = Next(streams.get());
  EXPECT_THAT(Sorted(NumbersOf(part)), ElementsAre(0, 1, 2));
  EXPECT_GE(topics_.now_ms - begin_ms, 1000);
  EXPECT_LE(topics_.now_ms - begin_ms, 1100);
  EXPECT_EQ(part.header.part().provenance(0).block_end(), 3u)
      << "the block ends where it was closed";
}

TEST_F(TopicStreamsTest, AQuietTopicSendsNothing) {
  const SplitList partitions = EndlessPartitions(2);
  const auto streams = Begin(SmallJob(JobConfig::HYBRID), partitions);
  EXPECT_TRUE(absl::IsDeadlineExceeded(NextPart(streams->sources()[0].sources[0]).status()));
}

TEST_F(TopicStreamsTest, ALaneWithoutRecordsSendsBatchesOfZeroSamples) {
  JobConfig job = SmallJob(JobConfig::SYNC);
  job.mutable_data()->mutable_kafka()->set_max_wait_ms(1000);
  WriteNumbers(0, 0, 2);
  const SplitList partitions = EndlessPartitions(2);
  const auto streams = Begin(job, partitions);
  EXPECT_EQ(Next(streams.get(), 1).header.part().samples(), 0u);
  EXPECT_EQ(Next(streams.get(), 1).header.part().id().seq(), 1u);
  EXPECT_EQ(Next(streams.get(), 0).header.part().samples(), 2u);
}

TEST_F(TopicStreamsTest, PartitionsOfALaneTakeTurnsBlockByBlock) {
  JobConfig job = SmallJob(JobConfig::SYNC);
  job.set_lanes(1);
  job.mutable_data()->set_shuffle_rows(2);
  WriteNumbers(0, 0, 7);
  WriteNumbers(1, 100, 103);
  SplitList partitions = EndlessPartitions(2);
  partitions.mutable_topics(0)->mutable_partitions(0)->set_end(7);
  partitions.mutable_topics(0)->mutable_partitions(1)->set_end(3);
  const auto streams = Begin(job, partitions);
  std::vector<uint32_t> splits;
  for (const Part& part : ReadParts(streams.get())) {
    for (const ProvenanceRange& range : part.header.part().provenance()) {
      if (range.records() == 2 || range.to() == 1) splits.push_back(range.split());
    }
  }
  EXPECT_THAT(splits, ElementsAre(0, 1, 0, 1, 0, 0)) << "a finished partition leaves";
}

TEST_F(TopicStreamsTest, AFileAndATopicOfTheSameRecordsGiveTheSameBatches) {
  TempDir dir;
  JobConfig job = Job(JobConfig::SYNC);
  job.set_lanes(1);
  ColumnConfig* const time = job.mutable_data()->mutable_csv()->add_columns();
  time->set_name("t");
  time->set_kind(ColumnConfig::TIME);
  std::string text;
  for (int i = 0; i < 60; ++i) {
    const std::string line = absl::StrCat(i % 2, ",", i, ",", 1000 + i);
    absl::StrAppend(&text, line, "\n");
    topics_.Write({"clicks", 0}, line);
  }
  SplitList partitions = EndlessPartitions(1);
  partitions.mutable_topics(0)->mutable_partitions(0)->set_end(60);
  const auto of_topic = Begin(job, partitions);
  job.mutable_data()->clear_kafka();
  dir.Write("a", text);
  job.set_data_root(dir.path());
  job.mutable_data()->add_train_files("a");
  auto of_file = LoaderStreams::Make(job, 0, nullptr);
  ASSERT_TRUE(of_file.ok()) << of_file.status();
  (*of_file)->MakeSources(&executor_, nullptr);
  for (int epoch = 0; epoch < 2; ++epoch) {
    std::vector<Part> expected = ReadParts(of_file->get());
    std::vector<Part> parts = ReadParts(of_topic.get());
    ASSERT_EQ(parts.size(), expected.size());
    for (size_t i = 0; i < parts.size(); ++i) {
      parts[i].header.mutable_part()->clear_provenance();
      expected[i].header.mutable_part()->clear_provenance();
      EXPECT_EQ(BytesOf(parts[i]), BytesOf(expected[i]));
    }
  }
}

TEST_F(TopicStreamsTest, BadRecordsGoToTheDeadLetterTopicBeforeTheirBlockIsSent) {
  TempDir dir;
  JobConfig job = SmallJob(JobConfig::HYBRID);
  job.set_run_dir(dir.path());
  job.mutable_data()->mutable_kafka()->set_dead_letter_topic("dead");
  topics_.Write({"clicks", 0}, "1,5\nbad\n");
  WriteNumbers(0, 1, 12);
  const SplitList partitions = EndlessPartitions(1);
  const auto streams = Begin(job, partitions);
  Next(streams.get());
  ASSERT_EQ(topics_.letters.size(), 1u);
  EXPECT_EQ(topics_.letters[0].key, "clicks/0/0/2");
  EXPECT_EQ(topics_.letters[0].value, "bad");
  EXPECT_THAT(topics_.letters[0].reason, HasSubstr("holds 'bad', but a label is expected"));
  EXPECT_TRUE(topics_.letters[0].is_flushed);
  EXPECT_EQ(streams->Progress().dead_letters(), 1u);
  EXPECT_EQ(streams->Progress().quarantined(), 1u);
  EXPECT_FALSE(streams->Progress().has_quarantine_file());
}

TEST_F(TopicStreamsTest, RecordsThatTheLossDoesNotTakeAreLeftOutAndToldOf) {
  for (const char* value : {"1,0", "-1,1", "0,1e22", "0,3"}) topics_.Write({"clicks", 0}, value);
  JobConfig job = SmallJob(JobConfig::HYBRID);
  job.mutable_data()->mutable_csv()->mutable_columns(0)->set_numeric_label(true);
  const SplitList partitions = EndlessPartitions(1);
  const auto streams = Begin(job, partitions);
  EXPECT_THAT(Sorted(NumbersOf(Next(streams.get()))), ElementsAre(0, 3));
  const LoaderProgress progress = streams->Progress();
  EXPECT_EQ(progress.quarantined(), 2u);
  EXPECT_THAT(progress.warnings(), ElementsAre(HasSubstr("in clicks/0: label y: -1 is not"),
                                               HasSubstr("in clicks/0: column 'x': 1e+22")));
  EXPECT_EQ(progress.labels(0).count(), 2u);
}

TEST_F(TopicStreamsTest, FirstLabelsThatTheLossDoesNotTakeEndARunThatBeginsFromNothing) {
  for (int i = 0; i < 60; ++i) topics_.Write({"clicks", 0}, i % 2 == 0 ? "-1,0" : "1,1");
  JobConfig job = SmallJob(JobConfig::HYBRID);
  job.mutable_data()->mutable_csv()->mutable_columns(0)->set_numeric_label(true);
  const SplitList partitions = EndlessPartitions(1);
  LoaderStreams::Begin begin;
  begin.judges_first_labels = true;
  const absl::Status status = ReadToError(Begin(job, partitions, begin).get());
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(
      std::string(status.message()),
      HasSubstr("label y: 11 of the first 21 labels of the training data are not a number in "
                "[0, 1], which BCE takes. The values are -1 (11 times), 1 (10 times)"));
  // Labels that the losses do not accept do not end a run that continues from a cut.
  const auto goes_on = Begin(job, partitions);
  EXPECT_THAT(Sorted(NumbersOf(Next(goes_on.get()))), ElementsAre(1, 1, 1, 1, 1, 1, 1, 1));
  EXPECT_THAT(goes_on->Progress().warnings(), ElementsAre(HasSubstr("label y: -1 is not")));
}

TEST_F(TopicStreamsTest, FirstLabelsAreJudgedWhenTheyComeToATopicThatWasEmpty) {
  JobConfig job = SmallJob(JobConfig::HYBRID);
  job.mutable_data()->mutable_csv()->mutable_columns(0)->set_numeric_label(true);
  // There are also too many bad records, but the error must be the one about labels.
  job.mutable_data()->set_max_bad_fraction(.01);
  const SplitList partitions = EndlessPartitions(1);
  LoaderStreams::Begin begin;
  begin.judges_first_labels = true;
  const auto streams = Begin(job, partitions, begin);
  absl::optional<absl::Status> status;
  streams->sources()[0].sources[0]->Next(
      [&](const absl::StatusOr<absl::optional<Part>>& part) { status = part.status(); });
  const auto run_for_a_minute = [&] {
    const int64_t end_ms = topics_.now_ms + 60000;
    while (!status.has_value() && topics_.now_ms < end_ms && executor_.RunOne()) continue;
  };
  run_for_a_minute();
  ASSERT_FALSE(status.has_value()) << "there is nothing to judge";
  WriteNumbers(0, 0, 5);
  for (int i = 0; i < 20; ++i) topics_.Write({"clicks", 0}, "5,1");
  run_for_a_minute();
  ASSERT_TRUE(status.has_value());
  EXPECT_THAT(std::string(status->message()),
              HasSubstr("The values are 5 (16 times), 1 (5 times)"));
}

TEST_F(TopicStreamsTest, LabelsAfterTheFirstThousandAreLeftToTheBadRecords) {
  JobConfig job = SmallJob(JobConfig::HYBRID);
  job.mutable_data()->mutable_csv()->mutable_columns(0)->set_numeric_label(true);
  job.set_global_batch_size(1000);
  job.mutable_data()->set_shuffle_rows(500);
  WriteNumbers(0, 0, 1000);
  for (int i = 0; i < 1000; ++i) topics_.Write({"clicks", 0}, "-1,0");
  const SplitList partitions = EndlessPartitions(1);
  LoaderStreams::Begin begin;
  begin.judges_first_labels = true;
  const auto streams = Begin(job, partitions, begin);
  EXPECT_EQ(NumbersOf(Next(streams.get())).size(), 1000u);
  for (int i = 0; i < 100000 && streams->Progress().quarantined() < 1000; ++i) executor_.RunOne();
  EXPECT_EQ(streams->Progress().quarantined(), 1000u);
}

TEST_F(TopicStreamsTest, ABrokerThatTakesNoDeadLettersIsWaitedForWithoutHoldingTheThread) {
  JobConfig job = SmallJob(JobConfig::HYBRID);
  job.mutable_data()->mutable_kafka()->set_dead_letter_topic("dead");
  topics_.flushes_in_vain = 400;
  topics_.Write({"clicks", 0}, "1,5\nbad\n");
  WriteNumbers(0, 1, 12);
  WriteNumbers(1, 100, 112);
  const SplitList partitions = EndlessPartitions(2);
  const auto streams = Begin(job, partitions);
  const int64_t begin_ms = topics_.now_ms;
  bool came = false;
  streams->sources()[0].sources[0]->Next(
      [&](absl::StatusOr<absl::optional<Part>>) { came = true; });
  // Each single task must take at most 200 ms.
  for (int64_t last_ms = begin_ms; !came && executor_.RunOne(); last_ms = topics_.now_ms) {
    EXPECT_LE(topics_.now_ms - last_ms, 200);
    ASSERT_LT(topics_.now_ms - begin_ms, 60000);
  }
  EXPECT_TRUE(came);
  EXPECT_GE(topics_.now_ms - begin_ms, 20000);
  ASSERT_EQ(topics_.letters.size(), 1u);
  EXPECT_TRUE(topics_.letters[0].is_flushed);
}

TEST_F(TopicStreamsTest, ADeadLetterThatIsNotTakenIsAnError) {
  JobConfig job = SmallJob(JobConfig::HYBRID);
  job.mutable_data()->mutable_kafka()->set_dead_letter_topic("dead");
  topics_.letter_error = absl::UnavailableError("no broker");
  topics_.Write({"clicks", 0}, "bad");
  const SplitList partitions = EndlessPartitions(1);
  const auto streams = Begin(job, partitions);
  EXPECT_EQ(ReadToError(streams.get()), topics_.letter_error);
}

TEST_F(TopicStreamsTest, WithoutADeadLetterTopicTheQuarantineSaysPartitionOffsetAndLine) {
  TempDir dir;
  JobConfig job = SmallJob(JobConfig::HYBRID);
  job.set_run_dir(dir.path());
  topics_.Write({"clicks", 0}, "1,5");
  topics_.Write({"clicks", 0}, "1,6\nbad\n");
  const SplitList partitions = EndlessPartitions(1);
  const auto streams = Begin(job, partitions);
  Next(streams.get());
  EXPECT_EQ(TempDir::Read(dir.path() + "/quarantine/g0001-loader-0.txt"), "bad\n");
  EXPECT_THAT(TempDir::Read(dir.path() + "/quarantine/g0001-loader-0.tsv"),
              HasSubstr("clicks/0\t1\t2\ttrain\tcolumn 'y' holds 'bad', but a label is expected"));
}

TEST_F(TopicStreamsTest, APartitionThatIsDealtIsRead) {
  WriteNumbers(1, 0, 3);
  const SplitList partitions = EndlessPartitions(1);
  const auto streams = Begin(SmallJob(JobConfig::HYBRID), partitions);
  EXPECT_EQ(streams->known_partitions(), 1u);
  EXPECT_TRUE(absl::IsDeadlineExceeded(NextPart(streams->sources()[0].sources[0]).status()));
  DealtPartition dealt;
  dealt.set_split(2);
  *dealt.mutable_partition() = PartitionOf(2);
  streams->Deal(dealt);
  EXPECT_EQ(streams->known_partitions(), 1u) << "the one before it has not come yet";
  dealt.set_split(1);
  *dealt.mutable_partition() = PartitionOf(1);
  streams->Deal(dealt);
  streams->Deal(dealt);
  EXPECT_EQ(streams->known_partitions(), 2u);
  topics_.now_ms += 1000;
  const int64_t end_ms = topics_.now_ms + 5000;
  while (topics_.now_ms < end_ms && streams->Progress().records() < 3 && executor_.RunOne()) {
  }
  EXPECT_EQ(streams->Progress().records(), 3u);
  dealt.set_split(2);
  dealt.set_loader(1);
  *dealt.mutable_partition() = PartitionOf(2);
  streams->Deal(dealt);
  EXPECT_EQ(streams->known_partitions(), 3u) << "another loader's counts, too";
  EXPECT_EQ(streams->Progress().partitions_size(), 2);
}

TEST_F(TopicStreamsTest, ThePartitionsOfALoaderShareItsQueue) {
  JobConfig job = SmallJob(JobConfig::HYBRID);
  job.mutable_data_loader()->set_threads(2);
  job.mutable_data()->mutable_kafka()->set_queue_bytes(3000);
  WriteNumbers(0, 0, 10);
  const SplitList partitions = EndlessPartitions(3);
  const auto streams = Begin(job, partitions);
  std::vector<float> numbers = NumbersOf(Next(streams.get()));
  EXPECT_THAT(topics_.queue_bytes, ElementsAre(2000, 1000)) << "two makers: partitions 0, 2 and 1";
  DealtPartition dealt;
  dealt.set_split(3);
  *dealt.mutable_partition() = PartitionOf(3);
  streams->Deal(dealt);
  WriteNumbers(0, 10, 14);
  WriteNumbers(3, 100, 104);
  while (numbers.size() < 18 && !HasFailure()) {
    for (const float x : NumbersOf(Next(streams.get()))) numbers.push_back(x);
  }
  EXPECT_THAT(Sorted(numbers),
              ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 100, 101, 102, 103));
  EXPECT_THAT(topics_.queue_bytes, ElementsAre(2000, 1000, 1500, 1500));
  EXPECT_EQ(topics_.open_sources, 2) << "the larger ones are closed";
}

TEST_F(TopicStreamsTest, LostOffsetsLeaveNoSourcesBehind) {
  JobConfig job = SmallJob(JobConfig::HYBRID);
  job.mutable_data()->mutable_kafka()->set_on_lost_offsets(KafkaConfig::SKIP);
  const SplitList partitions = EndlessPartitions(2);
  const auto streams = Begin(job, partitions);
  for (int round = 0; round < 20; ++round) {
    WriteNumbers(0, 10 * round, 10 * round + 10);
    topics_.Expire({"clicks", 0}, 10 * round + 7);
    EXPECT_THAT(Sorted(NumbersOf(Next(streams.get()))),
                ElementsAre(10 * round + 7, 10 * round + 8, 10 * round + 9));
  }
  EXPECT_EQ(streams->Progress().lost_messages(), 140u);
  EXPECT_LE(topics_.open_sources, 2) << "that of all partitions and that of the lost one";
}

TEST_F(TopicStreamsTest, LostOffsetsOfAnEvaluationAreCountedToo) {
  JobConfig job = SmallJob(JobConfig::HYBRID);
  *job.mutable_data()->mutable_valid_kafka() = job.data().kafka();
  job.mutable_data()->mutable_valid_kafka()->set_on_lost_offsets(KafkaConfig::SKIP);
  WriteNumbers(0, 0, 9);
  topics_.Expire({"clicks", 0}, 4);
  SplitList partitions = EndlessPartitions(1);
  *partitions.add_topics() = partitions.topics(0);
  partitions.mutable_topics(1)->set_stream(VALID_STREAM);
  partitions.mutable_topics(1)->mutable_partitions(0)->set_end(9);
  const auto streams = Begin(job, partitions);
  const auto part = NextPart(streams->sources()[1].sources[0]);
  ASSERT_TRUE(part.ok() && part->has_value()) << part.status();
  EXPECT_THAT(NumbersOf(**part), ElementsAre(4, 5, 6, 7, 8));
  EXPECT_EQ(streams->Progress().lost_messages(), 4u);
}

TEST_F(TopicStreamsTest, ABlockStaysOpenLongerWhileTheBrokerHasMoreThanHasArrived) {
  WriteNumbers(0, 0, 6);
  topics_.HoldBack({"clicks", 0}, 2);
  const SplitList partitions = EndlessPartitions(1);
  const auto streams = Begin(SmallJob(JobConfig::HYBRID), partitions);
  const int64_t begin_ms = topics_.now_ms;
  topics_.on_wait = [&] {
    if (topics_.now_ms - begin_ms >= 5000) topics_.HoldBack({"clicks", 0}, 4);
  };
  const Part part = Next(streams.get());
  EXPECT_GE(topics_.now_ms - begin_ms, 10000);
  EXPECT_LE(topics_.now_ms - begin_ms, 10100) << "but it does not wait for ever";
  EXPECT_THAT(Sorted(NumbersOf(part)), ElementsAre(0, 1, 2, 3));
}

TEST_F(TopicStreamsTest, LongStretchesWithoutRecordsAreSentInBatchesOfTheirOwn) {
  JobConfig job = SmallJob(JobConfig::SYNC);
  job.set_lanes(1);
  job.mutable_data()->set_shuffle_rows(1);
  for (int i = 0; i < 1000; ++i) topics_.Write({"clicks", 0}, i % 400 == 399 ? "1,5" : "");
  SplitList partitions = EndlessPartitions(1);
  partitions.mutable_topics(0)->mutable_partitions(0)->set_end(1000);
  const Parts whole = ReadParts(Begin(job, partitions).get());
  ASSERT_EQ(whole.size(), 4u) << "998 blocks without records, 256 a batch";
  Ledger ledger;
  size_t samples = 0;
  for (size_t i = 0; i < whole.size(); ++i) {
    EXPECT_LE(whole[i].header.part().provenance_size(), 260);
    EXPECT_EQ(whole[i].header.part().last_of_lane(), i + 1 == whole.size());
    LoaderStreams::Begin begin = At(ledger);
    begin.position.add_lanes()->set_next_seq(i);
    topics_.max_read = 1 + 300 * i;
    const Parts rest = ReadParts(Begin(job, partitions, begin).get());
    ASSERT_EQ(rest.size(), whole.size() - i);
    for (size_t k = 0; k < rest.size(); ++k) EXPECT_EQ(BytesOf(rest[k]), BytesOf(whole[i + k]));
    Consume(whole[i], &ledger);
    samples += whole[i].header.part().samples();
  }
  EXPECT_EQ(samples, 2u);
  EXPECT_TRUE(ledger.IsSplitDone(0, 0));
}

TEST_F(TopicStreamsTest, SeveralLinesInAMessageOfOneTakeOneLineOfTheQuarantineFiles) {
  TempDir dir;
  JobConfig job = SmallJob(JobConfig::HYBRID);
  job.set_run_dir(dir.path());
  job.mutable_data()->mutable_kafka()->set_format(KafkaConfig::LINE);
  topics_.Write({"clicks", 0}, "1,5\n1,6\n1,7\n");
  topics_.Write({"clicks", 0}, "a\\b");
  topics_.Write({"clicks", 0}, "1,8");
  const SplitList partitions = EndlessPartitions(1);
  Next(Begin(job, partitions).get());
  EXPECT_EQ(TempDir::Read(dir.path() + "/quarantine/g0001-loader-0.txt"),
            "1,5\\n1,6\\n1,7\na\\\\b\n");
  const std::string places = TempDir::Read(dir.path() + "/quarantine/g0001-loader-0.tsv");
  EXPECT_THAT(places, HasSubstr("clicks/0\t0\t1\ttrain\tseveral lines"));
  EXPECT_THAT(places, HasSubstr("clicks/0\t1\t1\ttrain\t"));
  EXPECT_EQ(std::count(places.begin(), places.end(), '\n'), 2);
}

TEST_F(TopicStreamsTest, LateRecordsAreCountedAndTrained) {
  JobConfig job = SmallJob(JobConfig::HYBRID);
  job.mutable_data()->mutable_kafka()->set_allowed_lateness_ms(100);
  topics_.max_read = 1;
  topics_.Write({"clicks", 0}, "1,1", 5000);
  topics_.Write({"clicks", 0}, "1,2", 4900);
  topics_.Write({"clicks", 0}, "1,3", 4899);
  const SplitList partitions = EndlessPartitions(1);
  const auto streams = Begin(job, partitions);
  std::vector<float> numbers;
  while (numbers.size() < 3 && !HasFailure()) {
    for (const float x : NumbersOf(Next(streams.get()))) numbers.push_back(x);
  }
  EXPECT_EQ(streams->Progress().late_records(), 1u);
  EXPECT_EQ(streams->Progress().watermark_ms(), 5000);
  EXPECT_EQ(streams->Progress().partitions(0).next_offset(), 3u);
  EXPECT_EQ(streams->Progress().partitions(0).end_offset(), 3u);
}

TEST_F(TopicStreamsTest, EveryPassOfAnEvaluationReadsItsTopicAgain) {
  JobConfig job = SmallJob(JobConfig::HYBRID);
  *job.mutable_data()->mutable_valid_kafka() = job.data().kafka();
  WriteNumbers(0, 0, 5);
  topics_.Skip({"clicks", 0}, 10);
  SplitList partitions = EndlessPartitions(1);
  *partitions.add_topics() = partitions.topics(0);
  partitions.mutable_topics(1)->set_stream(VALID_STREAM);
  partitions.mutable_topics(1)->mutable_partitions(0)->set_start(1);
  partitions.mutable_topics(1)->mutable_partitions(0)->set_end(14);
  const auto streams = Begin(job, partitions);
  PartSource* const valid = streams->sources()[1].sources[0];
  for (int pass = 0; pass < 3; ++pass) {
    auto part = NextPart(valid);
    ASSERT_TRUE(part.ok() && part->has_value()) << part.status();
    EXPECT_THAT(NumbersOf(**part), ElementsAre(1, 2, 3, 4));
    part = NextPart(valid);
    ASSERT_TRUE(part.ok()) << part.status();
    EXPECT_FALSE(part->has_value());
  }
  EXPECT_THAT(topics_.opened_to_train, ::testing::Each(false)) << "anchors are the train stream's";
}

TEST_F(TopicStreamsTest, ALoaderWithoutPartitionsEndsABoundedEpoch) {
  JobConfig job = SmallJob(JobConfig::HYBRID);
  job.mutable_data_loader()->set_replicas(2);
  WriteNumbers(0, 0, 5);
  SplitList partitions = EndlessPartitions(1);
  partitions.mutable_topics(0)->mutable_partitions(0)->set_end(5);
  LoaderStreams::Begin begin;
  begin.topics = topics_.Access();
  begin.fix_files = [&](const SplitList& listed) {
    SplitList list = listed;
    *list.mutable_topics() = partitions.topics();
    return list;
  };
  auto second = LoaderStreams::Make(job, 1, nullptr, begin);
  ASSERT_TRUE(second.ok()) << second.status();
  (*second)->MakeSources(&executor_, nullptr);
  EXPECT_TRUE(ReadParts(second->get()).empty());
}

TEST_F(TopicStreamsTest, ThatTheCoordinatorGivesNoPartitionsIsAnError) {
  LoaderStreams::Begin begin;
  begin.topics = topics_.Access();
  begin.fix_files = [](const SplitList& listed) { return listed; };
  EXPECT_EQ(LoaderStreams::Make(SmallJob(JobConfig::HYBRID), 0, nullptr, begin).status().code(),
            absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace satrap
