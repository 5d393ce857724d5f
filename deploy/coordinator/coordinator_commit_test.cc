// What the coordinator's engine writes to disk: commits and the end of a run.

#include <string>
#include <utility>
#include <vector>

#include "deploy/coordinator/testing/coordinator_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using CoordinatorCommitTest = CoordinatorFixture;

TEST_F(CoordinatorCommitTest, ACommitIsAnEntryOfTheLogAndMovesTheLinks) {
  StartRun();
  executor_.AdvanceBy(1000 * 1000);
  ASSERT_TRUE(MakeAndCommit(1).ok());
  const CutEntry* cut = Log().last_cut();
  ASSERT_NE(cut, nullptr);
  const RunLog log = Log();
  EXPECT_EQ(log.last_cut()->cut(), "cut_0001_000001");
  EXPECT_EQ(log.last_cut()->step(), 10u);
  EXPECT_EQ(log.last_cut()->bytes(), 4u);
  EXPECT_EQ(disk_.TargetOf("/runs/small/checkpoints/latest"), "cut_0001_000001");
  executor_.AdvanceBy(2000 * 1000);
  const CutStatus status = engine_->Status().last_cut();
  EXPECT_EQ(status.cut(), "cut_0001_000001");
  EXPECT_EQ(status.seconds(), 0.5);
  EXPECT_EQ(status.age_seconds(), 2);
}

TEST_F(CoordinatorCommitTest, ARepeatedCommitIsAnsweredAgainAndAppendsNothing) {
  StartRun();
  ASSERT_TRUE(MakeAndCommit(1).ok());
  EXPECT_TRUE(Commit(CommitOf(1)).ok());
  EXPECT_EQ(Log().entries().size(), 3u);
}

TEST_F(CoordinatorCommitTest, RefusesWhatIsNoCutOfThisGeneration) {
  StartRun();
  MakeCut(2);
  CommitCutRequest other = CommitOf(3);
  other.set_cut("cut_0007_000003");
  disk_.Put("/runs/small/checkpoints/cut_0007_000003/manifest",
            disk_.ContentOf(Folder(2) + "/manifest"));
  EXPECT_EQ(Commit(other).code(), absl::StatusCode::kFailedPrecondition);
  CommitCutRequest another_run = CommitOf(4);
  *another_run.mutable_envelope() = AnotherRun();
  EXPECT_EQ(Commit(another_run).code(), absl::StatusCode::kFailedPrecondition);
  CommitCutRequest no_cut = CommitOf(5);
  no_cut.set_cut("../elsewhere");
  EXPECT_EQ(Commit(no_cut).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Log().entries().size(), 2u);
  EXPECT_EQ(state(), RUNNING);
}

// Whatever the error is, nothing is lost: the work is still in the tables, and the next cut saves
// it.
TEST_F(CoordinatorCommitTest, ACutWhoseFilesTheCoordinatorCannotReadIsAbandonedAndTheRunGoesOn) {
  StartRun();
  uint64_t cut = 0;
  for (const std::string file : {"/manifest", "/dense.bin"}) {
    for (const absl::StatusCode code :
         {absl::StatusCode::kDataLoss, absl::StatusCode::kPermissionDenied,
          absl::StatusCode::kResourceExhausted, absl::StatusCode::kFailedPrecondition}) {
      MakeCut(++cut);
      const std::string path = Folder(cut) + file;
      disk_.SetOpenHook([&](const std::string& opened) {
        return opened == path ? absl::Status(code, "cannot read " + path) : absl::OkStatus();
      });
      const auto answer = Call<CommitCutAnswer>(kCommitCut, CommitOf(cut));
      ASSERT_TRUE(answer.ok()) << answer.status();
      EXPECT_EQ(answer->outcome(), OUTCOME_DONE);
      EXPECT_EQ(answer->abandoned(), "cannot read " + path);
    }
  }
  disk_.SetOpenHook(nullptr);
  EXPECT_EQ(state(), RUNNING);
  EXPECT_EQ(Log().entries().size(), 2u);
  EXPECT_TRUE(MakeAndCommit(++cut).ok());
}

TEST_F(CoordinatorCommitTest, SoIsACutOfWhichAFileIsMissingOrShort) {
  StartRun();
  EXPECT_EQ(Commit(CommitOf(1)).code(), absl::StatusCode::kResourceExhausted);
  MakeCut(2);
  disk_.Put(Folder(2) + "/dense.bin", "123");
  const absl::Status status = Commit(CommitOf(2));
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(status.message(), HasSubstr(Folder(2) + "/dense.bin has 3 bytes"));
  EXPECT_EQ(state(), RUNNING);
  EXPECT_EQ(Log().entries().size(), 2u);
}

TEST_F(CoordinatorCommitTest, CutsAscend) {
  StartRun();
  ASSERT_TRUE(MakeAndCommit(2).ok());
  CommitCutRequest older = CommitOf(1);
  older.mutable_call()->set_number(3);
  EXPECT_EQ(Commit(older).code(), absl::StatusCode::kFailedPrecondition) << "its files are gone";
  MakeCut(1);
  older.mutable_call()->set_number(4);
  EXPECT_EQ(Commit(older).code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(CoordinatorCommitTest, NothingIsCommittedBeforeTheRunBeginsOrAfterTheGenerationHasEnded) {
  MakeCut(1);
  EXPECT_EQ(Commit(CommitOf(1)).code(), absl::StatusCode::kFailedPrecondition);
  StartRun();
  MakeCut(2);
  Fail(NN_WORKER, 0, "the peer is away", absl::StatusCode::kUnavailable);
  EXPECT_EQ(Commit(CommitOf(2)).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Log().entries().size(), 2u);
}

TEST_F(CoordinatorCommitTest, ACommitThatIsOvertakenByTheEndIsRefused) {
  StartRun();
  for (const std::string place : {"before its files are checked", "meanwhile"}) {
    Begin("x");
    StartRun();
    MakeCut(1);
    absl::StatusOr<CommitCutAnswer> answer = absl::UnknownError("");
    Send(kCommitCut, CommitOf(1), &answer);
    if (place == "meanwhile") {
      disk_.SetOpenHook([this](const std::string& path) {
        if (path == Folder(1) + "/dense.bin") FailMeanwhile();
        return absl::OkStatus();
      });
    } else {
      FailMeanwhile();
    }
    disk_executor_.RunReady();
    EXPECT_EQ(answer.status().code(), absl::StatusCode::kFailedPrecondition) << place;
    EXPECT_EQ(state(), RESTARTING);
  }
  EXPECT_EQ(Log().last_cut(), nullptr);
}

TEST_F(CoordinatorCommitTest, AnEndThatComesDuringTheAppendFollowsIt) {
  StartRun();
  MakeCut(1);
  WhileLinking([this] {
    EXPECT_EQ(FailMeanwhile().state(), RESTARTING) << "the role is told at once";
    EXPECT_EQ(state(), RUNNING);
  });
  EXPECT_TRUE(Commit(CommitOf(1)).ok());
  EXPECT_EQ(Log().entries().size(), 3u);
  EXPECT_EQ(state(), RESTARTING);
  EXPECT_EQ(reason(), "nn_worker 0: the peer is away");
}

TEST_F(CoordinatorCommitTest, ACutThatCannotBeWrittenIntoTheLogIsAbandonedAndTheRunGoesOn) {
  StartRun();
  Break("create /runs/small/log");
  MakeCut(1);
  const auto answer = Call<CommitCutAnswer>(kCommitCut, CommitOf(1));
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->outcome(), OUTCOME_DONE);
  EXPECT_THAT(answer->abandoned(), HasSubstr("no space left"));
  EXPECT_EQ(state(), RUNNING);
  EXPECT_FALSE(engine_->Status().has_last_cut());
  disk_.SetHook(nullptr);
  EXPECT_EQ(Commit(CommitOf(1)).code(), absl::StatusCode::kResourceExhausted)
      << "a repeat gets the same answer";
  ASSERT_TRUE(MakeAndCommit(2).ok());
  EXPECT_EQ(Log().last_cut()->cut(), "cut_0001_000002");
  EXPECT_EQ(Log().entries().size(), 3u);
}

TEST_F(CoordinatorCommitTest, ACutOfAStopThatIsAbandonedLeavesTheStopOpen) {
  StartRun();
  ASSERT_TRUE(Wish(WishRequest::STOP).ok());
  Break("create /runs/small/log");
  EXPECT_EQ(Leave(1, 1).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(state(), RUNNING);
  EXPECT_TRUE(Heartbeat(NN_WORKER, 0)->wish().leave());
}

// The commit must not be refused: rank 0 would then remove the files of a cut that may be
// committed.
TEST_F(CoordinatorCommitTest, ACommitOfUnknownOutcomeIsNeverAnsweredAndEndsTheGeneration) {
  StartRun();
  Break("sync_folder /runs/small/log");
  EXPECT_EQ(MakeAndCommit(1).code(), absl::StatusCode::kUnknown) << "not answered";
  EXPECT_EQ(state(), RESTARTING);
  EXPECT_THAT(reason(), HasSubstr("no space left"));
  disk_.SetHook(nullptr);
  Begin("x");
  EXPECT_EQ(Log().last_generation()->cut(), "cut_0001_000001");
}

TEST_F(CoordinatorCommitTest, AStopWhoseCommitIsOfUnknownOutcomeSaysThatItIsNotKnown) {
  StartRun();
  ASSERT_TRUE(Wish(WishRequest::STOP).ok());
  Break("sync_folder /runs/small/log");
  EXPECT_EQ(MakeAndCommit(1).code(), absl::StatusCode::kUnknown);
  EXPECT_EQ(state(), STOPPED);
  EXPECT_THAT(reason(), AllOf(HasSubstr("no space left"),
                              HasSubstr("it is not known whether cut_0001_000001 is committed")));
}

// If a member is lost while a cut's entry is being linked, the coordinator first waits for the
// link's outcome. Until then it must not tell a member that no restart is left.
TEST_F(CoordinatorCommitTest, ALossDuringTheAppendOfACutFindsTheRunWithAllItsRestarts) {
  job_.set_max_restarts(1);
  BeginNewRun();
  Begin("the only restart");
  StartRun();
  MakeCut(1);
  WhileLinking([this] {
    const FailAnswer told = FailMeanwhile();
    EXPECT_EQ(told.state(), RESTARTING);
    EXPECT_EQ(told.ending().text(), "nn_worker 0: the peer is away");
  });
  EXPECT_TRUE(Commit(CommitOf(1)).ok());
  EXPECT_EQ(state(), RESTARTING) << reason();
}

TEST_F(CoordinatorCommitTest, WhoFailsForGoodDuringAnAppendHearsSoWhenItComesAgain) {
  StartRun();
  MakeCut(1);
  WhileLinking(
      [this] { EXPECT_EQ(FailMeanwhile(absl::StatusCode::kInvalidArgument).state(), RESTARTING); });
  EXPECT_TRUE(Commit(CommitOf(1)).ok());
  EXPECT_EQ(state(), FAILED);
  EXPECT_TRUE(Register(NN_WORKER, 0, kFirst + 1).ok());
  EXPECT_EQ(Heartbeat(NN_WORKER, 0, kFirst + 1)->state(), FAILED);
}

TEST_F(CoordinatorCommitTest, WhoFailsDuringTheAppendOfAStopHearsSoWhenItComesAgain) {
  StartRun();
  ASSERT_TRUE(Wish(WishRequest::STOP).ok());
  WhileLinking([this] {
    EXPECT_EQ(FailMeanwhile().state(), RESTARTING) << "the log does not have the end yet";
  });
  EXPECT_TRUE(Leave(1, 1).ok());
  EXPECT_EQ(state(), STOPPED);
  EXPECT_EQ(reason(), "stopped on request after cut_0001_000001 at step 10; nothing is lost");
}

// The engine restarts the run, so that the next coordinator reads the log and decides whether the
// cut is committed.
TEST_F(CoordinatorCommitTest, ACommitOfUnknownOutcomeNeverFailsTheRunForWantOfRestarts) {
  job_.set_max_restarts(0);
  BeginNewRun();
  StartRun();
  Break("sync_folder /runs/small/log");
  EXPECT_EQ(MakeAndCommit(1).code(), absl::StatusCode::kUnknown) << "not answered";
  EXPECT_EQ(state(), RESTARTING);
}

TEST_F(CoordinatorCommitTest, ACoordinatorThatIsSupersededCommitsNothingAndEnds) {
  StartRun();
  Supersede();
  EXPECT_EQ(MakeAndCommit(1).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(state(), RESTARTING);
  EXPECT_THAT(reason(), HasSubstr("another coordinator"));
  EXPECT_EQ(Log().last_cut(), nullptr);
}

TEST_F(CoordinatorCommitTest, ACoordinatorLooksForItsSuccessorEveryFewSeconds) {
  StartRun();
  Supersede();
  Beat(4, COORDINATOR);  // all members' heartbeats
  EXPECT_EQ(state(), RESTARTING);
}

TEST_F(CoordinatorCommitTest, AndDoesNotLookOnlyOnce) {
  StartRun();
  Beat(10, COORDINATOR);  // all members' heartbeats
  EXPECT_EQ(state(), RUNNING);
  Supersede();
  Beat(4, COORDINATOR);
  EXPECT_EQ(state(), RESTARTING);
}

TEST_F(CoordinatorCommitTest, OldCutsAreRemovedAfterTheAnswer) {
  job_.mutable_checkpoint()->set_keep(1);
  BeginNewRun();
  StartRun();
  ASSERT_TRUE(MakeAndCommit(1).ok());
  MakeCut(2);
  absl::StatusOr<CommitCutAnswer> answer = absl::UnknownError("");
  Send(kCommitCut, CommitOf(2), &answer);
  disk_.SetHook([&](const std::string& operation) {
    if (operation.rfind("remove /runs/small/checkpoints/cut", 0) == 0) {
      EXPECT_TRUE(answer.ok()) << operation;
    }
    return absl::OkStatus();
  });
  disk_executor_.RunReady();
  EXPECT_FALSE(disk_.Exists(Folder(1)));
  EXPECT_TRUE(disk_.Exists(Folder(2)));
}

TEST_F(CoordinatorCommitTest, ACoordinatorThatIsSupersededTidiesNothing) {
  job_.mutable_checkpoint()->set_keep(1);
  BeginNewRun();
  StartRun();
  ASSERT_TRUE(MakeAndCommit(1).ok());
  MakeCut(2);
  // The answer is sent before old cuts are removed, so another coordinator may claim in between.
  rpc::Message message;
  message.header = CommitOf(2).SerializeAsString();
  engine_->Handle(kCommitCut, std::move(message),
                  [this](absl::StatusOr<rpc::Message>) { Supersede("cut_0001_000001"); });
  disk_executor_.RunReady();
  EXPECT_EQ(Log().entries().size(), 5u);
  EXPECT_TRUE(disk_.Exists(Folder(1))) << "the run was taken back to it";
  EXPECT_EQ(disk_.TargetOf("/runs/small/checkpoints/latest"), "cut_0001_000001");
}

TEST_F(CoordinatorCommitTest, TheNextGenerationBeginsFromTheNewestCut) {
  StartRun();
  ASSERT_TRUE(MakeAndCommit(1).ok());
  ASSERT_TRUE(MakeAndCommit(2).ok());
  Begin("embedding_ps 1 was killed");
  const auto rank = Call<RegisterAnswer>(kRegister, RegisterOf(NN_WORKER, 0));
  ASSERT_TRUE(rank.ok());
  EXPECT_EQ(rank->envelope().generation(), 2u);
  EXPECT_EQ(rank->cut(), "/runs/small/checkpoints/cut_0001_000002");
  EXPECT_EQ(rank->position().step(), 20u);
  EXPECT_EQ(rank->ledger().epochs(0).rows(), 5u);
  EXPECT_EQ(Call<RegisterAnswer>(kRegister, RegisterOf(DATA_LOADER, 0))->ledger().epochs_size(), 1);
  EXPECT_FALSE(Call<RegisterAnswer>(kRegister, RegisterOf(EMBEDDING_PS, 0))->has_ledger());
  const StatusAnswer status = engine_->Status();
  ASSERT_EQ(status.restarts_size(), 1);
  EXPECT_EQ(status.restarts(0).cause(), "embedding_ps 1 was killed");
  EXPECT_EQ(status.restarts(0).from_step(), 20u);
  EXPECT_EQ(status.last_cut().cut(), "cut_0001_000002");
}

TEST_F(CoordinatorCommitTest, LeasesWhatTheCutHasNotDone) {
  StartRun();
  ASSERT_TRUE(MakeAndCommit(1).ok());
  Begin("x");
  LeaseSplitRequest lease;
  *lease.mutable_envelope() = ThisRun();
  lease.mutable_call()->set_number(1);
  lease.mutable_call()->set_oldest_open(1);
  lease.set_num_splits(3);
  EXPECT_EQ(Call<LeaseSplitAnswer>(kLeaseSplit, lease)->split(), 1u);
}

TEST_F(CoordinatorCommitTest, AZombieOfAnEarlierGenerationChangesNothing) {
  StartRun();
  MakeCut(1);
  const CommitCutRequest commit = CommitOf(1);
  const HeartbeatRequest beat = HeartbeatOf(NN_WORKER, 0);
  const FinishRequest finish = FinishOf();
  Begin("x");
  StartRun();
  EXPECT_EQ(Commit(commit).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Call<HeartbeatAnswer>(kHeartbeat, beat).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Call<FinishAnswer>(kFinish, finish).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(state(), RUNNING);
  EXPECT_EQ(Log().last_cut(), nullptr);
}

TEST_F(CoordinatorCommitTest, LossesEndTheRunWhenNoRestartIsLeftAndTheCausesAreTold) {
  job_.set_max_restarts(1);
  BeginNewRun();
  EXPECT_EQ(Fail(NN_WORKER, 0, "first", absl::StatusCode::kUnavailable).state(), RESTARTING);
  Begin("nn_worker 0: first");
  EXPECT_EQ(Fail(NN_WORKER, 0, "second", absl::StatusCode::kUnavailable).state(), FAILED);
  EXPECT_THAT(reason(), AllOf(HasSubstr("nn_worker 0: second"), HasSubstr("max_restarts"),
                              HasSubstr("generation 1: nn_worker 0: first")));
}

TEST_F(CoordinatorCommitTest, ACommitGivesARunItsRestartsAgain) {
  job_.set_max_restarts(1);
  BeginNewRun();
  Begin("x");
  StartRun();
  ASSERT_TRUE(MakeAndCommit(1).ok());
  EXPECT_EQ(Fail(NN_WORKER, 0, "x", absl::StatusCode::kUnavailable).state(), RESTARTING);
}

TEST_F(CoordinatorCommitTest, ARunWithoutRestartsEndsAtItsFirstLossWithTheCauseAlone) {
  job_.set_max_restarts(0);
  BeginNewRun();
  Fail(NN_WORKER, 0, "the peer is away", absl::StatusCode::kUnavailable);
  EXPECT_EQ(state(), FAILED);
  EXPECT_EQ(reason(), "nn_worker 0: the peer is away");
}

TEST_F(CoordinatorCommitTest, FinishedIsInTheLogBeforeAnybodyIsTold) {
  StartRun();
  absl::StatusOr<FinishAnswer> first = absl::UnknownError("");
  absl::StatusOr<FinishAnswer> repeat = absl::UnknownError("");
  Send(kFinish, FinishOf(), &first);
  Send(kFinish, FinishOf(), &repeat);
  EXPECT_EQ(state(), RUNNING);
  EXPECT_FALSE(first.ok());
  disk_executor_.RunReady();
  EXPECT_TRUE(first.ok());
  EXPECT_TRUE(repeat.ok());
  EXPECT_EQ(state(), FINISHED);
  EXPECT_EQ(Log().entries().size(), 3u);
  EXPECT_EQ(Log().end()->result().samples(), 7u);
}

TEST_F(CoordinatorCommitTest, AFinishThatIsOvertakenByALossIsNotInTheLog) {
  StartRun();
  absl::StatusOr<FinishAnswer> answer = absl::UnknownError("");
  Send(kFinish, FinishOf(), &answer);
  FailMeanwhile();
  disk_executor_.RunReady();
  EXPECT_TRUE(answer.ok());
  EXPECT_EQ(state(), RESTARTING);
  EXPECT_EQ(Log().end(), nullptr);
}

TEST_F(CoordinatorCommitTest, AnEndThatCannotBeWrittenEndsTheGenerationOnly) {
  StartRun();
  Break("create /runs/small/log");
  EXPECT_EQ(Call<FinishAnswer>(kFinish, FinishOf()).status().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(state(), RESTARTING);
  EXPECT_THAT(reason(), HasSubstr("no space left"));
}

TEST_F(CoordinatorCommitTest, KillPointsLieBeforeAndAfterTheLink) {
  for (const auto& [point, entries] : std::vector<std::pair<KillPoint::Point, size_t>>{
           {KillPoint::COORDINATOR_BEFORE_LINK, 2}, {KillPoint::COORDINATOR_AFTER_LINK, 3}}) {
    JobConfig job;
    job.add_kill_points()->set_point(point);
    size_t entries_then = 0;
    KillPoints kill_points(job, 0, 1, [&] { entries_then = Log().entries().size(); });
    options_.kill_points = &kill_points;
    BeginNewRun();
    StartRun();
    ASSERT_TRUE(MakeAndCommit(1).ok());
    EXPECT_EQ(entries_then, entries) << KillPoint::Point_Name(point);
    engine_.reset();
    options_.kill_points = nullptr;
  }
}

}  // namespace
}  // namespace satrap
