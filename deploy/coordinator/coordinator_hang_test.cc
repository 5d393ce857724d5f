// A disk that hangs: the coordinator's file operations do not return.

#include <functional>
#include <string>
#include <utility>

#include "deploy/coordinator/testing/coordinator_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class CoordinatorHangTest : public CoordinatorFixture {
 protected:
  // Starts a run with all its members, in which a file operation may take 20 s.
  void StartRunWithLimit(int max_restarts = 10) {
    job_.mutable_checkpoint()->set_limit_seconds(20);
    job_.set_max_restarts(max_restarts);
    BeginNewRun();
    StartRun();
  }
  // Lets time pass while a file operation does not return; the members' heartbeats still arrive.
  void Hang(int seconds) { Beat(seconds, COORDINATOR); }
  // Runs `work` in the middle of the removal of each cut.
  void WhileRemoving(std::function<void()> work) {
    disk_.SetHook([this, work = std::move(work)](const std::string& operation) {
      const bool removes = operation.rfind("remove /runs/small/checkpoints/cut", 0) == 0;
      if (removes && operation.find("/manifest") != std::string::npos) {
        ++removals_;
        work();
      }
      return absl::OkStatus();
    });
  }
  int removals_ = 0;
  // Repeats the commit of cut 1, whose first attempt was answered WAIT while the disk hung.
  absl::Status CommitAgain() { return Commit(CommitOf(1)); }
};

TEST_F(CoordinatorHangTest, AnAppendThatHangsEndsTheGenerationAfterTheLimit) {
  StartRunWithLimit();
  MakeCut(1);
  WhileLinking([this] {
    Hang(20);
    EXPECT_EQ(state(), RUNNING);
    EXPECT_TRUE(engine_->DiskIsBusy());
    Hang(1);
    EXPECT_EQ(state(), RESTARTING);
    BeatAll();
    EXPECT_TRUE(engine_->EveryoneKnowsTheEnd());
  });
  EXPECT_EQ(Commit(CommitOf(1)).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(CommitAgain().code(), absl::StatusCode::kUnknown) << "not answered";
  EXPECT_EQ(reason(),
            "coordinator: a file operation in /runs/small has not returned for 20 s "
            "(checkpoint.limit_seconds); does the disk hang?");
  EXPECT_FALSE(engine_->DiskIsBusy());
  // The disk works again, and the next coordinator finds the entry in the log.
  EXPECT_FALSE(engine_->Status().has_last_cut());
  disk_.SetHook(nullptr);
  Begin("x");
  EXPECT_EQ(Log().last_generation()->cut(), "cut_0001_000001");
}

TEST_F(CoordinatorHangTest, SoDoesACheckOfFilesThatHangsAndItsCutIsRefused) {
  StartRunWithLimit();
  MakeCut(1);
  disk_.SetOpenHook([this](const std::string& path) {
    if (path == Folder(1) + "/dense.bin") Hang(21);
    return absl::OkStatus();
  });
  Commit(CommitOf(1)).IgnoreError();
  EXPECT_EQ(CommitAgain().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(state(), RESTARTING);
  EXPECT_THAT(reason(), HasSubstr("does the disk hang?"));
  EXPECT_EQ(Log().last_cut(), nullptr);
}

TEST_F(CoordinatorHangTest, AnEndThatWasPutOffDoesNotWaitForADiskThatHangs) {
  StartRunWithLimit();
  MakeCut(1);
  WhileLinking([this] {
    FailMeanwhile();
    Hang(21);
    EXPECT_EQ(state(), RESTARTING);
  });
  Commit(CommitOf(1)).IgnoreError();
  EXPECT_THAT(reason(), AllOf(HasSubstr("nn_worker 0: the peer is away; coordinator: a file"),
                              HasSubstr("does the disk hang?")));
}

TEST_F(CoordinatorHangTest, AStopWhoseCommitHangsSaysThatItsOutcomeIsNotKnown) {
  StartRunWithLimit();
  ASSERT_TRUE(Wish(WishRequest::STOP).ok());
  WhileLinking([this] { Hang(21); });
  Leave(1, 1).IgnoreError();
  EXPECT_EQ(CommitAgain().code(), absl::StatusCode::kUnknown) << "not answered";
  EXPECT_EQ(state(), STOPPED);
  EXPECT_THAT(reason(), AllOf(HasSubstr("does the disk hang?"),
                              HasSubstr("it is not known whether cut_0001_000001 is committed")));
}

TEST_F(CoordinatorHangTest, AnEndOfTheRunThatHangsEndsTheGenerationAndTheNextFindsIt) {
  StartRunWithLimit(/*max_restarts=*/0);
  WhileLinking([this] { Hang(21); });
  Finish();
  EXPECT_EQ(state(), RESTARTING) << "no restart is left, but the run may have finished";
  disk_.SetHook(nullptr);
  Begin();
  EXPECT_EQ(state(), FINISHED);
}

TEST_F(CoordinatorHangTest, SoDoesAnEndThatIsToldOnlyByTheLog) {
  for (const RunState ends : {FAILED, STOPPED}) {
    job_.mutable_checkpoint()->set_limit_seconds(20);
    BeginNewRunInPods();
    StartRun();
    WhileLinking([this] {
      Hang(20);
      EXPECT_EQ(state(), RUNNING) << "nobody is told before the log has it";
      Hang(1);
      EXPECT_EQ(state(), RESTARTING);
    });
    if (ends == FAILED) {
      EXPECT_EQ(Fail(NN_WORKER, 0, "it is wrong").state(), RESTARTING);
      EXPECT_THAT(reason(), HasSubstr("nn_worker 0: it is wrong"));
    } else {
      EXPECT_TRUE(Wish(WishRequest::STOP).ok());
      Fail(NN_WORKER, 0, "the peer is away", absl::StatusCode::kUnavailable);
    }
    EXPECT_EQ(state(), RESTARTING);
    EXPECT_THAT(reason(), HasSubstr("does the disk hang?"));
    disk_.SetHook(nullptr);
    BeginInPods(1);
    EXPECT_EQ(state(), ends) << "the disk had taken it in the end";
    EXPECT_EQ(generation_, 1u);
  }
}

TEST_F(CoordinatorHangTest, ALauncherIsToldAnEndThatHangsBeforeTheLimitOfTheDisk) {
  StartRunWithLimit();
  WhileLinking([this] {
    Hang(9);
    EXPECT_EQ(state(), RUNNING);
    Hang(2);
    EXPECT_EQ(state(), FAILED);
  });
  EXPECT_EQ(Fail(NN_WORKER, 0, "it is wrong").state(), FAILED);
}

TEST_F(CoordinatorHangTest, TheAnnouncementOfASizeThatHangsEndsTheGenerationAsWell) {
  StartRunWithLimit();
  JobConfig job = job_;
  job.mutable_embedding_ps()->set_replicas(4);
  ASSERT_TRUE(Wish(WishRequest::SCALE, job).ok());
  disk_.SetHook([this](const std::string& operation) {
    if (operation.rfind("create /runs/small/log/00000004", 0) == 0) Hang(21);
    return absl::OkStatus();
  });
  Leave(1, 1).IgnoreError();
  EXPECT_TRUE(CommitAgain().ok()) << "the cut is committed";
  EXPECT_EQ(state(), RESTARTING);
  EXPECT_THAT(reason(), HasSubstr("does the disk hang?"));
}

// The limit applies to each removal, so removing many cuts from a slow disk does not count as a
// hang.
TEST_F(CoordinatorHangTest, TheRemovalOfManyCutsMayTakeLongerThanTheLimit) {
  job_.mutable_checkpoint()->set_keep(3);
  StartRunWithLimit();
  for (uint64_t cut = 1; cut <= 3; ++cut) ASSERT_TRUE(MakeAndCommit(cut).ok());
  job_.mutable_checkpoint()->set_keep(1);
  Resume();
  StartRun();
  WhileRemoving([this] { Hang(15); });
  EXPECT_TRUE(MakeAndCommit(1).ok());
  EXPECT_EQ(removals_, 3);
  EXPECT_EQ(state(), RUNNING) << reason();
}

TEST_F(CoordinatorHangTest, ARemovalThatHangsEndsTheGeneration) {
  job_.mutable_checkpoint()->set_keep(1);
  StartRunWithLimit();
  ASSERT_TRUE(MakeAndCommit(1).ok());
  WhileRemoving([this] { Hang(21); });
  EXPECT_TRUE(MakeAndCommit(2).ok()) << "it is answered before";
  EXPECT_EQ(removals_, 1);
  EXPECT_EQ(state(), RESTARTING);
  EXPECT_THAT(reason(), HasSubstr("does the disk hang?"));
}

TEST_F(CoordinatorHangTest, TheDiskIsBusyFromTheMomentAtWhichWorkIsPosted) {
  StartRunWithLimit();
  MakeCut(1);
  absl::StatusOr<CommitCutAnswer> answer = absl::UnknownError("");
  Send(kCommitCut, CommitOf(1), &answer);
  EXPECT_TRUE(engine_->DiskIsBusy());
  WhileLinking([this] { EXPECT_TRUE(engine_->DiskIsBusy()); });
  disk_executor_.RunReady();
  EXPECT_TRUE(answer.ok());
  EXPECT_FALSE(engine_->DiskIsBusy());
}

TEST_F(CoordinatorHangTest, ItsOwnStandstillIsNoneOfTheDisk) {
  StartRunWithLimit();
  MakeCut(1);
  WhileLinking([this] {
    executor_.JumpBy(60 * 1000 * 1000);
    executor_.RunReady();
    EXPECT_EQ(state(), RUNNING) << reason();
  });
  Commit(CommitOf(1)).IgnoreError();
  EXPECT_TRUE(CommitAgain().ok());
}

}  // namespace
}  // namespace satrap
