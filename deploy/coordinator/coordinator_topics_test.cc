// What the coordinator's engine does about topics, with a cluster in memory.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "common/checkpoint/job_of_run.h"
#include "common/rpc/header.h"
#include "deploy/coordinator/coordinator_fixture.h"
#include "deploy/coordinator/fake_topic_source.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kLookUs = 11 * 1000 * 1000;  // within which new partitions are found

class CoordinatorTopicsTest : public CoordinatorFixture {
 protected:
  CoordinatorTopicsTest() {
    job_.mutable_data_loader()->set_replicas(2);
    job_.mutable_data()->clear_format();
    kafka()->add_brokers("b:9092");
    kafka()->add_topics("clicks");
    cluster_.partitions[{"clicks", 0}] = {0, 100, {}};
    cluster_.partitions[{"clicks", 1}] = {0, 50, {}};
    options_.topics = &cluster_;
    options_.topic_executor = &topic_executor_;
    options_.warn = [this](const std::string& warning) { warnings_.push_back(warning); };
    BeginAnew();
  }
  // The engine refers to what is above.
  ~CoordinatorTopicsTest() override { engine_.reset(); }

  KafkaConfig* kafka() { return job_.mutable_data()->mutable_kafka(); }
  // Begins another run with job_ as it is now.
  void BeginAnew() {
    engine_.reset();
    EXPECT_TRUE(disk_.Remove(kRun).ok() && disk_.CreateFolders(kRun).ok());
    Begin();
  }

  FixSplitsRequest FixOf(uint32_t loader) const {
    FixSplitsRequest request;
    *request.mutable_envelope() = ThisRun();
    request.set_loader(loader);
    request.mutable_splits()->add_streams();
    return request;
  }
  void RunAll() {
    while (disk_executor_.num_ready() + topic_executor_.num_ready() > 0) {
      disk_executor_.RunReady();
      topic_executor_.RunReady();
    }
  }
  // The train stream's topics, as the loader is told.
  absl::StatusOr<StreamTopics> Fix(uint32_t loader) {
    absl::StatusOr<FixSplitsAnswer> answer = absl::UnknownError("");
    Send(kFixSplits, FixOf(loader), &answer);
    RunAll();
    if (!answer.ok()) return answer.status();
    EXPECT_EQ(answer->splits().topics_size(), 1);
    return answer->splits().topics(0);
  }
  static std::vector<uint64_t> StartsOf(const absl::StatusOr<StreamTopics>& topics) {
    EXPECT_TRUE(topics.ok()) << topics.status();
    std::vector<uint64_t> starts;
    if (!topics.ok()) return starts;
    for (const auto& partition : topics->partitions()) starts.push_back(partition.start());
    return starts;
  }
  // All members ready, and the topics fixed.
  void StartTopics() {
    ASSERT_TRUE(Fix(0).ok());
    ASSERT_TRUE(Fix(1).ok());
    RegisterAll();
    ASSERT_TRUE(Register(DATA_LOADER, 1).ok());
    BeatFor(0);
    ASSERT_EQ(state(), RUNNING);
    Settle();
  }
  // Heartbeats of all members for this long, with all that is to be done meanwhile.
  void BeatFor(int64_t us) {
    do {
      BeatAll();
      EXPECT_TRUE(Heartbeat(DATA_LOADER, 1).ok());
      const int64_t part_us = std::min<int64_t>(us, 1000 * 1000);
      executor_.AdvanceBy(part_us);
      RunAll();
      us -= part_us;
    } while (us > 0);
  }
  void Settle() {
    executor_.RunReady();
    RunAll();
  }
  // What a heartbeat of the loader, which knows so many, deals: "SPLIT->LOADER".
  std::vector<std::string> DealtTo(int loader, uint32_t known) {
    HeartbeatRequest request = HeartbeatOf(DATA_LOADER, loader);
    request.set_known_partitions(known);
    const auto answer = Call<HeartbeatAnswer>(kHeartbeat, request);
    std::vector<std::string> dealt;
    for (const DealtPartition& each : answer->dealt()) {
      dealt.push_back(absl::StrCat(each.split(), "->", each.loader()));
    }
    return dealt;
  }
  std::vector<StreamTopics> TopicsEntries() {
    std::vector<StreamTopics> entries;
    const RunLog log = Log();
    for (const RunLogEntry& entry : log.entries()) {
      if (entry.has_topics()) entries.push_back(entry.topics().topics(0));
    }
    return entries;
  }
  // From now on nothing can be appended to the log.
  void FillDisk() {
    disk_.SetHook([](const std::string& operation) {
      return operation.rfind("append /runs/small/log", 0) == 0
                 ? absl::ResourceExhaustedError("no space left on device")
                 : absl::OkStatus();
    });
  }
  // A cut of this generation that has consumed [0, `consumed`) of each partition, and more after a
  // gap.
  void MakeTopicCut(uint64_t cut, const std::vector<uint64_t>& consumed, uint64_t order = 0) {
    MakeCut(cut, order);
    auto manifest = ReadManifest(Folder(cut), &disk_);
    ASSERT_TRUE(manifest.ok()) << manifest.status();
    manifest->clear_ledger();
    EpochLedger* epoch = manifest->mutable_ledger()->add_epochs();
    for (size_t j = 0; j < consumed.size(); ++j) {
      SplitLedger* split = epoch->add_splits();
      split->set_split(static_cast<uint32_t>(j));
      if (consumed[j] > 0) {
        split->add_done_blocks(0);
        split->add_done_blocks(consumed[j] - 1);
      }
      split->add_done_blocks(consumed[j] + 5);
      split->add_done_blocks(consumed[j] + 9);
      split->set_last_offset(consumed[j] + 9);
      split->set_rows(consumed[j] + 5);
      epoch->set_rows(epoch->rows() + split->rows());
    }
    ASSERT_TRUE(WriteManifest(Folder(cut), *manifest, &disk_).ok());
  }
  // The offsets of all commits, one after another.
  std::vector<std::vector<int64_t>> Commits() const {
    std::vector<std::vector<int64_t>> commits;
    for (const auto& commit : cluster_.commits) {
      std::vector<int64_t>& offsets = commits.emplace_back();
      for (const KafkaPlace& place : commit) offsets.push_back(place.offset);
    }
    return commits;
  }

  FakeTopicSource cluster_;
  ManualExecutor topic_executor_;
  std::vector<std::string> warnings_;
};

TEST_F(CoordinatorTopicsTest, TheTopicsAreInTheLogWhenALoaderIsAnswered) {
  bool in_log = false;
  engine_->Handle(kFixSplits, rpc::MessageOf(FixOf(0)), [&](absl::StatusOr<rpc::Message> answer) {
    EXPECT_TRUE(answer.ok()) << answer.status();
    in_log = TopicsEntries().size() == 1;
  });
  disk_executor_.RunReady();
  topic_executor_.RunReady();
  EXPECT_THAT(TopicsEntries(), IsEmpty());
  RunAll();
  EXPECT_TRUE(in_log);
  const auto other = Fix(1);
  EXPECT_EQ(other->SerializeAsString(), TopicsEntries()[0].SerializeAsString());
  EXPECT_EQ(TopicsEntries().size(), 1u);
}

TEST_F(CoordinatorTopicsTest, ADeathBeforeTheEntryLeavesNothing) {
  kafka()->mutable_start()->set_at(KafkaStart::LATEST);
  BeginAnew();
  absl::StatusOr<FixSplitsAnswer> answer = absl::UnknownError("");
  Send(kFixSplits, FixOf(0), &answer);
  disk_executor_.RunReady();
  topic_executor_.RunReady();  // the offsets are found
  Begin("the coordinator was killed");
  cluster_.partitions[{"clicks", 0}].latest = 120;
  EXPECT_THAT(StartsOf(Fix(0)), ElementsAre(120, 50));
  EXPECT_EQ(TopicsEntries().size(), 1u);
}

TEST_F(CoordinatorTopicsTest, ADeathAfterTheEntryKeepsTheOffsetsThoughLatestHasMoved) {
  kafka()->mutable_start()->set_at(KafkaStart::LATEST);
  kafka()->mutable_end()->set_at(KafkaEnd::AT_START);
  BeginAnew();
  // The loader never gets the answer, and the coordinator dies right after the link.
  engine_->Handle(kFixSplits, rpc::MessageOf(FixOf(0)), [](absl::StatusOr<rpc::Message>) {});
  RunAll();
  Begin("the coordinator was killed");
  cluster_.partitions[{"clicks", 0}] = {110, 120, {}};
  EXPECT_THAT(StartsOf(Fix(0)), ElementsAre(100, 50));
  EXPECT_EQ(Fix(1)->partitions(0).end(), 100u);
  EXPECT_EQ(TopicsEntries().size(), 1u);
}

TEST_F(CoordinatorTopicsTest, OfTwoCoordinatorsTheOldOneWritesNoTopics) {
  absl::StatusOr<FixSplitsAnswer> answer = absl::UnknownError("");
  Send(kFixSplits, FixOf(0), &answer);
  disk_executor_.RunReady();
  topic_executor_.RunReady();
  RunLog other = Log();
  RunLogEntry next;
  next.mutable_generation()->set_generation(generation_ + 1);
  ASSERT_TRUE(other.Append(next).ok());
  RunAll();
  EXPECT_EQ(state(), RESTARTING);
  EXPECT_THAT(reason(), HasSubstr("another coordinator"));
  EXPECT_EQ(answer.status().code(), absl::StatusCode::kFailedPrecondition) << answer.status();
  EXPECT_THAT(TopicsEntries(), IsEmpty());
}

TEST_F(CoordinatorTopicsTest, AFullDiskAtTheEntryEndsTheGenerationAndSaysSo) {
  FillDisk();
  EXPECT_EQ(Fix(0).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(state(), RESTARTING);
  EXPECT_THAT(reason(), AllOf(HasSubstr("topics cannot be written into the run's log"),
                              HasSubstr("no space left on device")));
  disk_.SetHook(nullptr);
  Begin("the disk was full");
  EXPECT_TRUE(Fix(0).ok());
}

TEST_F(CoordinatorTopicsTest, WhatKeepsTheTopicsFromBeingFoundIsTheRunsOneMessage) {
  for (const absl::Status& error :
       {absl::UnavailableError("no Kafka broker of b:9092 has answered"),
        absl::PermissionDeniedError("the Kafka broker refused the login"),
        absl::NotFoundError("there is no topic clicks")}) {
    BeginAnew();
    cluster_.error = error;
    EXPECT_EQ(Fix(0).status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(state(), FAILED);
    EXPECT_EQ(reason(), error.message());
    EXPECT_THAT(TopicsEntries(), IsEmpty());
  }
}

TEST_F(CoordinatorTopicsTest, ABrokerThatIsAwayIsWaitedForOnceTheRunHasItsTopics) {
  ASSERT_TRUE(Fix(0).ok());
  Begin("the broker was killed");
  cluster_.error = absl::UnavailableError("no Kafka broker of b:9092 has answered");
  absl::StatusOr<FixSplitsAnswer> first = absl::UnknownError("");
  absl::StatusOr<FixSplitsAnswer> again = absl::UnknownError("");
  Send(kFixSplits, FixOf(1), &first);
  Settle();
  Send(kFixSplits, FixOf(1), &again);
  Settle();
  EXPECT_EQ(first.status().code(), absl::StatusCode::kUnavailable) << "the loader has asked again";
  for (int second = 0; second < 30; ++second) {
    executor_.AdvanceBy(1000 * 1000);
    RunAll();
  }
  EXPECT_EQ(state(), STARTING);
  EXPECT_EQ(again.status().code(), absl::StatusCode::kUnknown) << "not answered yet";
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("no Kafka broker of b:9092")));
  cluster_.error = absl::OkStatus();
  executor_.AdvanceBy(1000 * 1000);
  RunAll();
  EXPECT_TRUE(again.ok()) << again.status();
}

TEST_F(CoordinatorTopicsTest, ABrokerThatStaysAwayFailsTheRunWithOneMessage) {
  kafka()->set_broker_wait_seconds(20);
  BeginAnew();
  ASSERT_TRUE(Fix(0).ok());
  Begin("the broker was killed");
  cluster_.error = absl::UnavailableError("no Kafka broker of b:9092 has answered");
  absl::StatusOr<FixSplitsAnswer> answer = absl::UnknownError("");
  Send(kFixSplits, FixOf(0), &answer);
  for (int second = 0; second < 22; ++second) {
    EXPECT_EQ(state(), second < 21 ? STARTING : FAILED) << second;
    RunAll();
    executor_.AdvanceBy(1000 * 1000);
  }
  EXPECT_THAT(reason(), AllOf(HasSubstr("b:9092"), HasSubstr("broker_wait_seconds")));
  EXPECT_EQ(answer.status().code(), absl::StatusCode::kFailedPrecondition) << answer.status();
}

// The earlier size would wait for the same broker: nothing is gained by going back to it.
TEST_F(CoordinatorTopicsTest, ABrokerThatIsAwayWhileASizeBeginsDoesNotUndoTheSize) {
  for (const bool changes_brokers : {false, true}) {
    SCOPED_TRACE(changes_brokers ? "the change may be what is wrong" : "");
    job_.mutable_data()->mutable_kafka()->set_brokers(0, "b:9092");
    kafka()->set_broker_wait_seconds(20);
    job_.mutable_embedding_ps()->set_replicas(2);
    cluster_.error = absl::OkStatus();
    BeginAnew();
    StartTopics();
    job_.mutable_embedding_ps()->set_replicas(3);
    if (changes_brokers) kafka()->set_brokers(0, "nowhere:9092");
    RunLogEntry announced;
    announced.mutable_generation()->set_generation(2);
    announced.mutable_generation()->set_run_id(kRunId);
    announced.mutable_generation()->set_began(BEGAN_SCALE_ANNOUNCED);
    *announced.mutable_generation()->mutable_job() = job_;
    ASSERT_TRUE(Log().Append(announced).ok());
    Begin();
    cluster_.error = absl::UnavailableError("no Kafka broker has answered");
    absl::StatusOr<FixSplitsAnswer> answer = absl::UnknownError("");
    Send(kFixSplits, FixOf(0), &answer);
    for (int second = 0; second < 22; ++second) {
      RunAll();
      executor_.AdvanceBy(1000 * 1000);
    }
    RunAll();
    EXPECT_EQ(state(), changes_brokers ? RESTARTING : FAILED);
    EXPECT_EQ(ending().why(), Ending::TOPICS);
    const RunLog log = Log();
    EXPECT_EQ(JobOfNext(log.entries())->embedding_ps().replicas(), changes_brokers ? 2 : 3);
    EXPECT_EQ(DroppedChange(log.entries()) != nullptr, changes_brokers);
  }
}

TEST_F(CoordinatorTopicsTest, ALoaderOfARunThatHasFinishedIsGivenItsTopics) {
  const auto before = Fix(0);
  RunLog log = Log();
  RunLogEntry end;
  end.mutable_end();
  ASSERT_TRUE(log.Append(end).ok());
  Begin("the coordinator was killed");
  ASSERT_EQ(state(), FINISHED);
  EXPECT_EQ(Fix(1)->SerializeAsString(), before->SerializeAsString());
}

TEST_F(CoordinatorTopicsTest, AnotherClusterFailsTheRun) {
  ASSERT_TRUE(Fix(0).ok());
  Begin("x");
  cluster_.cluster_id = "cluster-b";
  EXPECT_FALSE(Fix(0).ok());
  EXPECT_EQ(state(), FAILED);
  EXPECT_THAT(reason(), AllOf(HasSubstr("cluster-a"), HasSubstr("cluster-b")));
}

TEST_F(CoordinatorTopicsTest, APartitionThatIsGoneFailsTheRun) {
  ASSERT_TRUE(Fix(0).ok());
  Begin("x");
  cluster_.partitions.erase({"clicks", 1});
  EXPECT_FALSE(Fix(0).ok());
  EXPECT_EQ(state(), FAILED);
  EXPECT_THAT(reason(), HasSubstr("clicks/1"));
}

TEST_F(CoordinatorTopicsTest, FewerPartitionsThanLanesFailASyncRun) {
  job_.set_mode(JobConfig::SYNC);
  job_.set_lanes(3);
  BeginAnew();
  EXPECT_FALSE(Fix(0).ok());
  EXPECT_EQ(state(), FAILED);
  EXPECT_THAT(reason(), HasSubstr("lanes"));
  EXPECT_THAT(TopicsEntries(), IsEmpty());
}

TEST_F(CoordinatorTopicsTest, NewPartitionsAreWrittenThenDealtToTheLoaderWithTheFewest) {
  cluster_.partitions[{"clicks", 2}] = {0, 1, {}};
  StartTopics();
  cluster_.partitions[{"clicks", 3}] = {4, 9, {}};
  cluster_.partitions[{"clicks", 4}] = {0, 9, {}};
  EXPECT_THAT(DealtTo(0, 3), IsEmpty());
  BeatFor(kLookUs);
  ASSERT_EQ(TopicsEntries().size(), 2u);
  EXPECT_THAT(StartsOf(TopicsEntries()[1]), ElementsAre(4, 0));
  // Loader 0 has two already.
  EXPECT_THAT(DealtTo(0, 3), ElementsAre("3->1", "4->0"));
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(CoordinatorTopicsTest, WhatALostAnswerHasDealtIsDealtAgainUntilItIsKnown) {
  StartTopics();
  cluster_.partitions[{"clicks", 2}] = {0, 1, {}};
  BeatFor(kLookUs);
  EXPECT_THAT(DealtTo(1, 2), ElementsAre("2->0"));
  EXPECT_THAT(DealtTo(1, 2), ElementsAre("2->0"));
  cluster_.partitions[{"clicks", 3}] = {0, 1, {}};
  BeatFor(kLookUs);
  EXPECT_THAT(DealtTo(1, 2), ElementsAre("2->0", "3->1"));
  EXPECT_THAT(DealtTo(1, 3), ElementsAre("3->1"));
  EXPECT_THAT(DealtTo(1, 4), IsEmpty());
}

TEST_F(CoordinatorTopicsTest, ALaterGenerationBeginsWithAllPartitions) {
  StartTopics();
  const uint64_t order = Heartbeat(NN_WORKER, 0)->order_fingerprint();
  cluster_.partitions[{"clicks", 2}] = {7, 8, {}};
  BeatFor(kLookUs);
  EXPECT_THAT(StartsOf(Fix(1)), ElementsAre(0, 0)) << "a generation's answers are all the same";
  MakeTopicCut(1, {30, 20}, order);
  ASSERT_TRUE(Commit(CommitOf(1)).ok());
  Begin("x");
  EXPECT_THAT(StartsOf(Fix(0)), ElementsAre(0, 0, 7));
  EXPECT_EQ(state(), STARTING) << "a grown list does not change the order";
  StartTopics();
  EXPECT_EQ(Heartbeat(NN_WORKER, 0)->order_fingerprint(), order);
  EXPECT_THAT(DealtTo(0, 3), IsEmpty()) << "all loaders know these";
  cluster_.partitions[{"clicks", 3}] = {0, 1, {}};
  BeatFor(kLookUs);
  EXPECT_THAT(DealtTo(0, 3), ElementsAre("3->1")) << "loader 0 has the partitions 0 and 2";
}

TEST_F(CoordinatorTopicsTest, NewPartitionsThatCannotBeWrittenAreFoundAgain) {
  StartTopics();
  FillDisk();
  cluster_.partitions[{"clicks", 2}] = {0, 1, {}};
  BeatFor(2 * kLookUs);
  EXPECT_EQ(state(), RUNNING);
  EXPECT_THAT(DealtTo(0, 2), IsEmpty());
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("no space left on device")));
  disk_.SetHook(nullptr);
  BeatFor(kLookUs);
  EXPECT_THAT(DealtTo(0, 2), ElementsAre("2->0"));
}

TEST_F(CoordinatorTopicsTest, ABrokerThatIsAwayWhileTheRunTrainsIsWarnedOfOnce) {
  StartTopics();
  cluster_.error = absl::UnavailableError("no Kafka broker of b:9092 has answered");
  BeatFor(3 * kLookUs);
  EXPECT_EQ(state(), RUNNING);
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("b:9092")));
}

TEST_F(CoordinatorTopicsTest, ASyncRunWarnsOnceOfNewPartitionsAndLeavesThemOut) {
  job_.set_mode(JobConfig::SYNC);
  job_.set_lanes(2);
  BeginAnew();
  StartTopics();
  cluster_.partitions[{"clicks", 2}] = {0, 1, {}};
  BeatFor(3 * kLookUs);
  EXPECT_EQ(TopicsEntries().size(), 1u);
  EXPECT_THAT(DealtTo(0, 2), IsEmpty());
  EXPECT_THAT(warnings_, ElementsAre(AllOf(HasSubstr("clicks/2"), HasSubstr("SYNC"))));
}

TEST_F(CoordinatorTopicsTest, ABoundedRunLooksForNoNewPartitions) {
  kafka()->mutable_end()->set_at(KafkaEnd::AT_START);
  BeginAnew();
  StartTopics();
  cluster_.partitions[{"clicks", 2}] = {0, 1, {}};
  BeatFor(2 * kLookUs);
  EXPECT_THAT(DealtTo(0, 2), IsEmpty());
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(CoordinatorTopicsTest, TheGroupFollowsCommittedCutsUpToTheFirstGap) {
  StartTopics();
  MakeTopicCut(1, {30, 0});
  EXPECT_THAT(Commits(), IsEmpty()) << "the cut is not committed yet";
  ASSERT_TRUE(Commit(CommitOf(1)).ok());
  RunAll();
  EXPECT_THAT(Commits(), ElementsAre(ElementsAre(30, 0)));
}

TEST_F(CoordinatorTopicsTest, ACutThatIsAbandonedMovesNoOffsets) {
  StartTopics();
  MakeTopicCut(1, {30, 20});
  FillDisk();
  ASSERT_FALSE(Commit(CommitOf(1)).ok());
  RunAll();
  EXPECT_THAT(Commits(), IsEmpty());
}

TEST_F(CoordinatorTopicsTest, WhileOffsetsAreCommittedOnlyTheNewestCutIsKept) {
  StartTopics();
  for (uint64_t cut = 1; cut <= 4; ++cut) {
    MakeTopicCut(cut, {10 * cut, 0});
    ASSERT_TRUE(Commit(CommitOf(cut)).ok());  // the broker is slow: its executor does not run
  }
  EXPECT_EQ(topic_executor_.num_ready(), 1u);
  EXPECT_TRUE(engine_->AsksBroker());
  RunAll();
  EXPECT_THAT(Commits(), ElementsAre(ElementsAre(10, 0), ElementsAre(40, 0)));
  EXPECT_FALSE(engine_->AsksBroker());
}

TEST_F(CoordinatorTopicsTest, AFailedCommitOfOffsetsOnlyWarnsOnceForEachCause) {
  StartTopics();
  cluster_.commit_error = absl::UnavailableError("cannot commit offsets: timed out");
  for (uint64_t cut = 1; cut <= 4; ++cut) {
    if (cut == 3) cluster_.commit_error = absl::PermissionDeniedError("the group is not yours");
    MakeTopicCut(cut, {10 * cut, 0});
    ASSERT_TRUE(Commit(CommitOf(cut)).ok());
    RunAll();
  }
  EXPECT_EQ(state(), RUNNING);
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("timed out"), HasSubstr("not yours")));
}

TEST_F(CoordinatorTopicsTest, OffsetsThatADeadCoordinatorDidNotCommitAreCommittedByTheNext) {
  StartTopics();
  MakeTopicCut(1, {30, 20}, Heartbeat(NN_WORKER, 0)->order_fingerprint());
  ASSERT_TRUE(Commit(CommitOf(1)).ok());
  Begin("the coordinator was killed");
  topic_executor_.RunReady();  // what the dead one had begun has no effect on this one
  cluster_.commits.clear();
  ASSERT_TRUE(Fix(0).ok());
  EXPECT_THAT(Commits(), ElementsAre(ElementsAre(30, 20)));
}

TEST_F(CoordinatorTopicsTest, TheStatusHasWhatTheLoadersTell) {
  EXPECT_FALSE(engine_->Status().has_topics()) << "not known yet";
  StartTopics();
  HeartbeatRequest request = HeartbeatOf(DATA_LOADER, 1);
  request.mutable_loader()->set_late_records(3);
  PartitionProgress* progress = request.mutable_loader()->add_partitions();
  progress->set_split(1);
  progress->set_next_offset(20);
  progress->set_end_offset(50);
  ASSERT_TRUE(Call<HeartbeatAnswer>(kHeartbeat, request).ok());
  const TopicsStatus status = engine_->Status().topics();
  EXPECT_EQ(status.lag_messages(), 30u);
  EXPECT_EQ(status.late_records(), 3u);
  ASSERT_EQ(status.partitions_size(), 2);
  EXPECT_EQ(status.partitions(1).loader(), 1u);
  EXPECT_EQ(status.partitions(1).progress().next_offset(), 20u);
}

TEST_F(CoordinatorTopicsTest, ALoaderThatTheJobDoesNotHaveIsRefused) {
  EXPECT_EQ(Fix(2).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace satrap
