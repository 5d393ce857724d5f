// What a coordinator does to the run's log apart from cuts: it compacts the log, and appends
// RUNNING once a changed job has begun to train.

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "common/checkpoint/entries/job_of_run.h"
#include "deploy/coordinator/testing/coordinator_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class CoordinatorLogTest : public CoordinatorFixture {
 protected:
  JobConfig LargerJob() const {
    JobConfig job = job_;
    job.mutable_embedding_worker()->set_replicas(2);
    return job;
  }
  // Changes the run's size: its next generation has the larger job, which has not begun to train.
  void Scale() {
    StartRun();
    const auto wish = Wish(WishRequest::SCALE, LargerJob());
    ASSERT_TRUE(wish.ok()) << wish.status();
    ASSERT_TRUE(Leave(1, *wish).ok());
    TakeJobOfNext();
    Begin();
  }
  void TakeJobOfNext() { job_ = *JobOfNext(Log().entries()); }
  int Workers() { return Log().last_generation()->job().embedding_worker().replicas(); }
  std::vector<std::string> Dropped() {
    std::vector<std::string> changes;
    const RunLog log = Log();
    for (const RunLogEntry& entry : log.entries()) {
      if (entry.has_dropped()) changes.push_back(entry.dropped().change());
    }
    return changes;
  }
  std::vector<uint64_t> Running() {
    std::vector<uint64_t> generations;
    const RunLog log = Log();
    for (const RunLogEntry& entry : log.entries()) {
      if (entry.has_running()) generations.push_back(entry.running().generation());
    }
    return generations;
  }
  FailAnswer FailForGood() {
    EXPECT_TRUE(Register(NN_WORKER, 0).ok());
    const FailAnswer answer =
        Fail(NN_WORKER, 0, "there is no card", absl::StatusCode::kFailedPrecondition);
    disk_executor_.RunReady();
    return answer;
  }
  size_t FilesOfLog() { return disk_.List("/runs/small/log")->size(); }
};

TEST_F(CoordinatorLogTest, TheLogOfALongGenerationStaysShort) {
  options_.compact_after = 10;
  BeginNewRun();
  StartRun();
  for (uint64_t cut = 1; cut <= 100; ++cut) {
    ASSERT_TRUE(MakeAndCommit(cut).ok());
    EXPECT_LE(FilesOfLog(), 11u);
    EXPECT_LE(Log().entries().size(), 20u);
  }
  EXPECT_EQ(Log().last_cut()->cut(), "cut_0001_000100");
  EXPECT_GT(Log().left_out_cuts(), 80u);
  Begin("a PS died");
  EXPECT_EQ(Log().last_generation()->cut(), "cut_0001_000100");
  EXPECT_EQ(Log().last_generation()->run_id(), kRunId);
}

TEST_F(CoordinatorLogTest, AClaimCompactsTheLongLogOfAnOlderBuild) {
  StartRun();
  for (uint64_t cut = 1; cut <= 30; ++cut) ASSERT_TRUE(MakeAndCommit(cut).ok());
  ASSERT_EQ(FilesOfLog(), 32u);
  ClaimRequest request;
  request.job = job_;
  request.writer = 77;
  request.run_id = kRunId;
  request.compact_after = 20;
  const auto claimed = ClaimGeneration(request, &disk_);
  ASSERT_TRUE(claimed.ok()) << claimed.status();
  EXPECT_THAT(claimed->warnings, IsEmpty());
  EXPECT_EQ(FilesOfLog(), 1u);
  EXPECT_EQ(Log().next_start(), "cut_0001_000030");
  EXPECT_EQ(Log().restarts_without_cut(), 1);
}

TEST_F(CoordinatorLogTest, ALogThatCannotBeCompactedNowIsCompactedLater) {
  options_.compact_after = 4;
  std::vector<std::string> warnings;
  options_.warn = [&warnings](const std::string& warning) { warnings.push_back(warning); };
  BeginNewRun();
  StartRun();
  ASSERT_TRUE(MakeAndCommit(1).ok());
  Break("create /runs/small/log/00000005");
  ASSERT_TRUE(MakeAndCommit(2).ok());
  EXPECT_THAT(warnings, ElementsAre("the run's log is not compacted: no space left"));
  EXPECT_EQ(state(), RUNNING);
  disk_.SetHook(nullptr);
  for (uint64_t cut = 3; cut <= 8; ++cut) ASSERT_TRUE(MakeAndCommit(cut).ok());
  EXPECT_EQ(warnings.size(), 1u);
  EXPECT_GT(Log().compacted_number(), 0u);
}

TEST_F(CoordinatorLogTest, ACompactionOfUnknownOutcomeEndsTheGenerationAndLosesNothing) {
  options_.compact_after = 4;
  BeginNewRun();
  StartRun();
  ASSERT_TRUE(MakeAndCommit(1).ok());
  disk_.SetHook([this](const std::string& operation) {
    const bool fails =
        operation == "sync_folder /runs/small/log" && disk_.Exists("/runs/small/log/00000005");
    return fails ? absl::DataLossError("the disk is broken") : absl::OkStatus();
  });
  EXPECT_TRUE(MakeAndCommit(2).ok());
  EXPECT_EQ(state(), RESTARTING);
  EXPECT_EQ(ending().why(), Ending::LOG_NOT_WRITTEN);
  disk_.SetHook(nullptr);
  Begin("x");
  EXPECT_EQ(Log().last_generation()->cut(), "cut_0001_000002");
}

// If a member fails during a compaction, the generation ends only after the compaction.
TEST_F(CoordinatorLogTest, AnEndInTheMiddleOfACompactionIsPutOff) {
  options_.compact_after = 4;
  BeginNewRun();
  StartRun();
  ASSERT_TRUE(MakeAndCommit(1).ok());
  FailAnswer told;
  disk_.SetHook([&](const std::string& operation) {
    if (absl::StartsWith(operation, "hard_link") && absl::EndsWith(operation, "/00000005")) {
      told = FailMeanwhile();
    }
    return absl::OkStatus();
  });
  EXPECT_TRUE(MakeAndCommit(2).ok());
  EXPECT_EQ(told.state(), RESTARTING);
  EXPECT_EQ(state(), RESTARTING);
  EXPECT_EQ(ending().why(), Ending::MEMBER_FAILED);
  EXPECT_EQ(Log().compacted_number(), 5u);
}

// The compaction of the other coordinator has removed the file with the number that this
// coordinator links next, so the link itself succeeds.
TEST_F(CoordinatorLogTest, ACoordinatorThatWasHeldUpTakesNoStaleLinkForACommit) {
  StartRun();
  RunLog other = Log();
  RunLogEntry next;
  next.mutable_generation()->set_generation(generation_ + 1);
  ASSERT_TRUE(other.Append(next).ok());
  ASSERT_TRUE(other.Compact(1).ok());
  ASSERT_TRUE(other.RemoveCompacted(100).ok());
  EXPECT_EQ(MakeAndCommit(1).code(), absl::StatusCode::kUnknown) << "not answered";
  EXPECT_EQ(state(), RESTARTING);
  EXPECT_EQ(ending().why(), Ending::SUPERSEDED);
  EXPECT_EQ(Log().last_cut(), nullptr);
}

TEST_F(CoordinatorLogTest, SaysOnceThatAJobHasBegunToTrain) {
  EXPECT_THAT(Running(), IsEmpty());
  StartRun();
  EXPECT_THAT(Running(), ElementsAre(1));
  Begin("a PS died");
  StartRun();
  EXPECT_THAT(Running(), ElementsAre(1)) << "it is the same job";
}

// If a member were told of RUNNING before the log has the entry, and the coordinator died in
// between, the job would have trained but could still be dropped.
TEST_F(CoordinatorLogTest, NobodyHearsThatAJobTrainsBeforeTheLogShowsIt) {
  RegisterAll();
  std::vector<RunState> told;
  WhileLinking([&] {
    EXPECT_THAT(Running(), IsEmpty());
    EXPECT_EQ(state(), STARTING);
    absl::StatusOr<HeartbeatAnswer> beat = absl::UnknownError("");
    Send(kHeartbeat, HeartbeatOf(NN_WORKER, 0), &beat);
    ASSERT_TRUE(beat.ok()) << beat.status();
    told.push_back(beat->state());
  });
  BeatAll();
  EXPECT_THAT(told, ElementsAre(STARTING)) << "one entry, however often they are ready";
  EXPECT_THAT(Running(), ElementsAre(1));
  EXPECT_EQ(state(), RUNNING);
}

TEST_F(CoordinatorLogTest, AJobOfWhichTheLogCannotSayThatItTrainsDoesNotTrain) {
  RegisterAll();
  Break("create /runs/small/log");
  BeatAll();
  EXPECT_EQ(state(), RESTARTING);
  EXPECT_EQ(ending().why(), Ending::LOG_NOT_WRITTEN);
  EXPECT_EQ(reason(),
            "coordinator: the beginning of training cannot be written into the run's log: no space "
            "left");
  disk_.SetHook(nullptr);
  EXPECT_THAT(Running(), IsEmpty());
  Begin(reason());
  StartRun();
  EXPECT_THAT(Running(), ElementsAre(2));
}

// A member fails while RUNNING is being appended. The log then says that the job runs, so the job
// is not dropped.
TEST_F(CoordinatorLogTest, AFailureWhileTheLogTakesRunningIsThatOfAJobThatRuns) {
  Scale();
  EXPECT_TRUE(Register(EMBEDDING_WORKER, 1).ok());
  RegisterAll();
  EXPECT_TRUE(Heartbeat(EMBEDDING_WORKER, 1).ok());
  WhileLinking([this] { FailMeanwhile(absl::StatusCode::kDataLoss); });
  BeatAll();
  disk_.SetHook(nullptr);
  EXPECT_EQ(state(), FAILED);
  EXPECT_THAT(Running(), ElementsAre(1, 3));
  EXPECT_THAT(Dropped(), IsEmpty());
}

TEST_F(CoordinatorLogTest, AJobThatIsBeingDroppedDoesNotBegin) {
  Scale();
  EXPECT_TRUE(Register(EMBEDDING_WORKER, 1).ok());
  RegisterAll();
  EXPECT_TRUE(Heartbeat(EMBEDDING_WORKER, 1).ok());
  // All members report that they are ready, but one fails before the disk begins to append RUNNING.
  for (const auto& [role, count] :
       std::vector<std::pair<Role, int>>{{DATA_LOADER, job_.data_loader().replicas()},
                                         {EMBEDDING_WORKER, 2},
                                         {EMBEDDING_PS, job_.embedding_ps().replicas()},
                                         {NN_WORKER, job_.nn_worker().replicas()}}) {
    for (int i = 0; i < count; ++i) {
      absl::StatusOr<HeartbeatAnswer> beat = absl::UnknownError("");
      Send(kHeartbeat, HeartbeatOf(role, i), &beat);
      EXPECT_TRUE(beat.ok()) << beat.status();
    }
  }
  FailMeanwhile(absl::StatusCode::kDataLoss);
  disk_executor_.RunReady();
  EXPECT_EQ(state(), RESTARTING);
  EXPECT_THAT(Running(), ElementsAre(1)) << "the smaller one";
  EXPECT_EQ(Dropped().size(), 1u);
}

TEST_F(CoordinatorLogTest, ASizeThatCannotBeginIsDroppedAndTheRunGoesOnAsItWas) {
  job_.set_max_restarts(0);
  BeginNewRun();
  Scale();
  ASSERT_EQ(Workers(), 2);
  EXPECT_EQ(FailForGood().state(), RESTARTING);
  EXPECT_EQ(state(), RESTARTING);
  EXPECT_THAT(reason(), HasSubstr("there is no card\n  the change of the job is dropped: "
                                  "embedding_worker.replicas from 1 to 2"));
  EXPECT_THAT(Dropped(), ElementsAre("embedding_worker.replicas from 1 to 2"));
  TakeJobOfNext();
  Begin(reason());
  EXPECT_EQ(Workers(), 1);
  EXPECT_EQ(Log().last_generation()->cut(), "cut_0001_000001");
  EXPECT_EQ(Log().restarts_without_cut(), 0) << "the run has not failed";
  StartRun();
  EXPECT_THAT(Running(), ElementsAre(1)) << "no other job has begun";
}

TEST_F(CoordinatorLogTest, ADeathWhileASizeBeginsDoesNotUndoIt) {
  Scale();
  ASSERT_TRUE(Register(NN_WORKER, 0).ok());
  EXPECT_EQ(Fail(NN_WORKER, 0, "a peer is away", absl::StatusCode::kUnavailable).state(),
            RESTARTING);
  EXPECT_THAT(Dropped(), IsEmpty());
  Begin(reason());
  EXPECT_EQ(Workers(), 2) << "it is tried again";
  EXPECT_EQ(FailForGood().state(), RESTARTING);
  EXPECT_EQ(Dropped().size(), 1u) << "it is on trial still";
}

TEST_F(CoordinatorLogTest, WhatHasBegunToTrainIsNotDropped) {
  Scale();
  EXPECT_TRUE(Register(EMBEDDING_WORKER, 1).ok());
  RegisterAll();
  EXPECT_TRUE(Heartbeat(EMBEDDING_WORKER, 1).ok());
  BeatAll();
  ASSERT_EQ(state(), RUNNING);
  EXPECT_THAT(Running(), ElementsAre(1, 3));
  EXPECT_EQ(Fail(NN_WORKER, 0, "x", absl::StatusCode::kDataLoss).state(), FAILED);
  EXPECT_THAT(Dropped(), IsEmpty());
  Resume();
  EXPECT_EQ(FailForGood().state(), FAILED) << "there is no other job to go back to";
  EXPECT_THAT(Dropped(), IsEmpty());
}

TEST_F(CoordinatorLogTest, WhoResumesWithAJobThatCannotBeginIsToldAndTheNextResumeHasTheOneBefore) {
  StartRun();
  ASSERT_TRUE(MakeAndCommit(1).ok());
  job_ = LargerJob();
  Resume();
  FailForGood();
  EXPECT_EQ(state(), FAILED);
  EXPECT_THAT(reason(), HasSubstr("embedding_worker.replicas from 1 to 2; the next `satrap resume` "
                                  "uses the earlier job"));
  TakeJobOfNext();
  EXPECT_EQ(job_.embedding_worker().replicas(), 1);
  Resume();
  StartRun();
  EXPECT_EQ(Workers(), 1);
}

// The user asked for a changed job and for a cut. Dropping the job keeps the cut, which is not part
// of the job.
TEST_F(CoordinatorLogTest, AResumeFromACutAfterADroppedJobHasTheEarlierJobAndThatCut) {
  StartRun();
  ASSERT_TRUE(MakeAndCommit(1).ok());
  ASSERT_TRUE(MakeAndCommit(2).ok());
  job_ = LargerJob();
  Resume("cut_0001_000001");
  FailForGood();
  EXPECT_EQ(Dropped().size(), 1u);
  TakeJobOfNext();
  Resume();
  EXPECT_EQ(Workers(), 1);
  EXPECT_EQ(Log().last_generation()->cut(), "cut_0001_000001") << "newer ones were given up";
  StartRun();
  EXPECT_EQ(Fail(NN_WORKER, 0, "x", absl::StatusCode::kDataLoss).state(), FAILED);
  Resume("cut_0001_000002");
  EXPECT_EQ(Workers(), 1);
  EXPECT_EQ(Log().last_generation()->cut(), "cut_0001_000002") << "which its folder still holds";
  StartRun();
  Begin("a PS died");
  EXPECT_EQ(Workers(), 1);
  EXPECT_EQ(Log().last_generation()->cut(), "cut_0001_000002");
  EXPECT_EQ(Dropped().size(), 1u);
}

// The ranks took a last cut before they left, and the dropped generation has not trained, so
// nothing is lost.
TEST_F(CoordinatorLogTest, AStopAfterADroppedSizeThatFollowsALastCutLosesNothing) {
  Scale();
  FailForGood();
  TakeJobOfNext();
  Begin(reason());
  ASSERT_TRUE(Wish(WishRequest::STOP).ok());
  EXPECT_EQ(reason(), "stopped on request; nothing is lost");
  EXPECT_EQ(ending().loss(), Ending::NOTHING);
}

TEST_F(CoordinatorLogTest, AStopWhileASizeIsDroppedStopsTheRunThatWouldGoOnWithTheEarlierOne) {
  Scale();
  WhileLinking([this] {
    WishRequest stop;
    stop.set_run_id(kRunId);
    stop.set_kind(WishRequest::STOP);
    absl::StatusOr<WishAnswer> taken = absl::UnknownError("");
    Send(kWish, stop, &taken);
    EXPECT_TRUE(taken.ok()) << taken.status();
  });
  FailForGood();
  disk_.SetHook(nullptr);
  EXPECT_EQ(state(), STOPPED);
  EXPECT_EQ(ending().loss(), Ending::NOTHING);
  EXPECT_EQ(Dropped().size(), 1u);
  TakeJobOfNext();
  EXPECT_EQ(job_.embedding_worker().replicas(), 1) << "what `satrap resume` begins with";
}

// The generation with the new size was lost and restarted before its size was dropped.
TEST_F(CoordinatorLogTest, SoDoesOneAfterASizeThatIsDroppedAtItsSecondAttempt) {
  Scale();
  ASSERT_TRUE(Register(NN_WORKER, 0).ok());
  Fail(NN_WORKER, 0, "a peer is away", absl::StatusCode::kUnavailable);
  Begin(reason());
  FailForGood();
  TakeJobOfNext();
  Begin(reason());
  ASSERT_TRUE(Wish(WishRequest::STOP).ok());
  EXPECT_EQ(reason(), "stopped on request; nothing is lost");
}

// The cut before the dropped job was not a last one: training continued after it, and it is not
// known how far.
TEST_F(CoordinatorLogTest, ButNotOneAfterADroppedJobThatFollowsAnotherCut) {
  StartRun();
  ASSERT_TRUE(MakeAndCommit(1).ok());
  job_ = LargerJob();
  Resume();
  FailForGood();
  TakeJobOfNext();
  Resume();
  ASSERT_TRUE(Wish(WishRequest::STOP).ok());
  EXPECT_THAT(reason(),
              HasSubstr("what earlier generations have trained after it, if any, is lost"));
  EXPECT_NE(ending().loss(), Ending::NOTHING);
}

// The run was stopped with a last cut, but a generation with the old size has trained since then.
TEST_F(CoordinatorLogTest, NorOneAfterAGenerationThatMayHaveTrainedSinceTheLastCut) {
  StartRun();
  ASSERT_TRUE(Wish(WishRequest::STOP).ok());
  ASSERT_TRUE(Leave(1, 1).ok());
  Resume();
  StartRun();
  job_ = LargerJob();
  Resume();
  FailForGood();
  TakeJobOfNext();
  Resume();
  ASSERT_TRUE(Wish(WishRequest::STOP).ok());
  EXPECT_THAT(reason(), HasSubstr("if any, is lost"));
}

// For example, the launcher cannot start a size if the programs for a device were not built.
TEST_F(CoordinatorLogTest, ASizeThatTheLauncherCannotStartIsDroppedByTheClaim) {
  Scale();
  ClaimRequest request;
  request.job = job_;
  request.writer = 77;
  request.run_id = kRunId;
  request.drops_change = true;
  request.ended.set_text("there is no program for it");
  const auto claimed = ClaimGeneration(request, &disk_);
  ASSERT_TRUE(claimed.ok()) << claimed.status();
  EXPECT_THAT(Dropped(), ElementsAre("embedding_worker.replicas from 1 to 2"));
  EXPECT_EQ(Workers(), 1);
  const RunLog log = Log();
  EXPECT_EQ(log.last_generation()->ended().text(), "there is no program for it");
  EXPECT_EQ(ClaimGeneration(request, &disk_).status().message(), "there is no program for it")
      << "there is no other job to go back to";
}

TEST_F(CoordinatorLogTest, AFirstGenerationHasNothingToGoBackTo) {
  FailForGood();
  EXPECT_EQ(state(), FAILED);
  EXPECT_THAT(reason(), Not(HasSubstr("dropped")));
  EXPECT_THAT(Dropped(), IsEmpty());
  job_ = LargerJob();
  Resume();
  FailForGood();
  EXPECT_EQ(state(), FAILED);
  EXPECT_THAT(Dropped(), IsEmpty()) << "no job of this run has begun to train";
}

TEST_F(CoordinatorLogTest, ADropThatCannotBeWrittenIsALossAfterWhichTheSizeIsTriedAgain) {
  Scale();
  Break("create /runs/small/log");
  FailForGood();
  EXPECT_EQ(state(), RESTARTING);
  EXPECT_EQ(ending().why(), Ending::LOG_NOT_WRITTEN);
  disk_.SetHook(nullptr);
  Begin(reason());
  EXPECT_EQ(Workers(), 2);
}

}  // namespace
}  // namespace satrap
