// How the coordinator's engine treats topics, with a cluster in memory.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "common/checkpoint/entries/job_of_run.h"
#include "common/rpc/header.h"
#include "deploy/coordinator/testing/coordinator_topics_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

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
  // The coordinator appends the entry, but dies before the loader gets the answer.
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

TEST_F(CoordinatorTopicsTest, NewPartitionsAreWrittenThenDealtToTheLoaderWithTheFewest) {
  cluster_.partitions[{"clicks", 2}] = {0, 1, {}};
  StartTopics();
  cluster_.partitions[{"clicks", 3}] = {4, 9, {}};
  cluster_.partitions[{"clicks", 4}] = {0, 9, {}};
  EXPECT_THAT(DealtTo(0, 3), IsEmpty());
  BeatFor(kLookUs);
  ASSERT_EQ(TopicsEntries().size(), 2u);
  EXPECT_THAT(StartsOf(TopicsEntries()[1]), ElementsAre(4, 0));
  // Loader 0 already has two partitions, so loader 1 gets the first new one.
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

// The generation of a job that was dropped has found a partition. Its offsets stay part of the run,
// whatever the next job is, and whether or not the log is compacted meanwhile.
TEST_F(CoordinatorTopicsTest, WhatTheGenerationOfADroppedJobHasFoundStaysReadable) {
  StartTopics();
  const uint64_t order = Heartbeat(NN_WORKER, 0)->order_fingerprint();
  MakeTopicCut(1, {30, 20}, order);
  ASSERT_TRUE(Commit(CommitOf(1)).ok());
  RunLogEntry larger;
  larger.mutable_generation()->set_generation(generation_ + 1);
  larger.mutable_generation()->set_run_id(kRunId);
  larger.mutable_generation()->set_began(BEGAN_RESUME);
  larger.mutable_generation()->set_cut("cut_0001_000001");
  *larger.mutable_generation()->mutable_job() = job_;
  larger.mutable_generation()->mutable_job()->mutable_embedding_ps()->set_replicas(3);
  RunLogEntry found;
  StreamTopics* const topics = found.mutable_topics()->add_topics();
  topics->set_stream(TRAIN_STREAM);
  topics->set_cluster_id(cluster_.cluster_id);
  TopicPartition* const partition = topics->add_partitions();
  partition->set_topic("clicks");
  partition->set_partition(2);
  partition->set_start(7);
  RunLogEntry dropped;
  dropped.mutable_dropped()->set_generation(generation_ + 1);
  RunLog log = Log();
  for (const RunLogEntry& entry : {larger, found, dropped}) ASSERT_TRUE(log.Append(entry).ok());
  cluster_.partitions[{"clicks", 2}] = {5, 90, {}};
  Begin("there is no card");
  ASSERT_EQ(JobOfNext(Log().entries())->embedding_ps().replicas(), 2);
  EXPECT_THAT(StartsOf(Fix(0)), ElementsAre(0, 0, 7));
  StartTopics();
  EXPECT_EQ(Heartbeat(NN_WORKER, 0)->order_fingerprint(), order);
  RunLog long_log = Log();
  ASSERT_TRUE(long_log.Compact(/*unix_ms=*/1).ok());
  Begin("a PS died");
  EXPECT_THAT(StartsOf(Fix(0)), ElementsAre(0, 0, 7));
  EXPECT_GT(Log().compacted_number(), 0u);
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
    ASSERT_TRUE(Commit(CommitOf(cut)).ok());  // a slow broker: do not run its executor
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
  topic_executor_.RunReady();  // the old engine's task must not affect this one
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
