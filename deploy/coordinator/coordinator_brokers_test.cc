// Failures of brokers and topics that keep a run from reading, and how the run then ends.

#include <string>
#include <utility>
#include <vector>

#include "common/checkpoint/entries/job_of_run.h"
#include "deploy/coordinator/testing/coordinator_topics_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

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

// If the broker does not answer, a generation of the earlier size could not begin either. So the
// new size is kept, unless the change of size also changes the brokers.
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

TEST_F(CoordinatorTopicsTest, ABrokerThatIsAwayWhileTheRunTrainsIsWarnedOfOnce) {
  StartTopics();
  cluster_.error = absl::UnavailableError("no Kafka broker of b:9092 has answered");
  BeatFor(3 * kLookUs);
  EXPECT_EQ(state(), RUNNING);
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("b:9092")));
}

}  // namespace
}  // namespace satrap
