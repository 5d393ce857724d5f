// Processes that leave their machines.

#include <string>

#include "common/checkpoint/entries/run_end.h"
#include "common/role/ending.h"
#include "deploy/coordinator/testing/coordinator_fixture.h"
#include "gmock/gmock.h"

namespace satrap {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class CoordinatorMoveTest : public CoordinatorFixture {
 protected:
  CoordinatorMoveTest() { BeginNewRunInPods(); }
  CutWish Asked() { return Heartbeat(NN_WORKER, 0)->wish(); }
  // Moves the coordinator's own pod. Then only the log can say how this generation ended.
  void MoveCoordinator() {
    engine_->Move();
    disk_executor_.RunReady();
  }
  // All members send a heartbeat each second; nn_worker 0 is never ready.
  void Load(int seconds) {
    HeartbeatRequest loading = HeartbeatOf(NN_WORKER, 0);
    loading.set_ready(false);
    for (int i = 0; i < seconds; ++i) {
      EXPECT_TRUE(Call<HeartbeatAnswer>(kHeartbeat, loading).ok());
      for (const Role role : {DATA_LOADER, EMBEDDING_WORKER, EMBEDDING_PS}) {
        EXPECT_TRUE(Heartbeat(role, 0).ok());
      }
      if (ps1_beats_) {
        EXPECT_TRUE(Heartbeat(EMBEDDING_PS, 1).ok());
      }
      executor_.AdvanceBy(1000 * 1000);
      disk_executor_.RunReady();
    }
  }
  bool ps1_beats_ = true;
};

TEST_F(CoordinatorMoveTest, AMemberThatLeavesItsMachineIsALastCutAndThenTheNextGeneration) {
  StartRun();
  EXPECT_EQ(SayLeaving(EMBEDDING_PS, 1)->state(), RUNNING);
  EXPECT_EQ(SayLeaving(EMBEDDING_PS, 1)->state(), RUNNING) << "it says so with every heartbeat";
  EXPECT_EQ(Asked().number(), 1u);
  EXPECT_TRUE(Asked().leave());
  ASSERT_TRUE(Leave(1, 1).ok());
  EXPECT_EQ(state(), RESTARTING);
  EXPECT_EQ(ending().why(), Ending::MOVED);
  EXPECT_EQ(ending().loss(), Ending::NOTHING);
  EXPECT_EQ(reason(),
            "embedding_ps 1 leaves its machine; the run continues from cut_0001_000001, and "
            "nothing is lost");
  EXPECT_EQ(Log().last_cut()->left_for(), CutEntry::MOVE);
  EXPECT_EQ(Log().end(), nullptr);
  BeginInPods(1);
  EXPECT_EQ(Log().last_generation()->began(), BEGAN_MOVED) << "though nobody has said so";
  EXPECT_EQ(Log().last_generation()->cut(), "cut_0001_000001");
  EXPECT_EQ(Log().restarts_without_cut(), 0);
}

TEST_F(CoordinatorMoveTest, SeveralShareACutAndItIsNoRestart) {
  job_.set_max_restarts(0);
  BeginNewRunInPods();
  for (uint64_t generation = 1; generation <= 3; ++generation) {
    StartRun();
    SayLeaving(EMBEDDING_PS, 1).IgnoreError();
    SayLeaving(NN_WORKER, 0).IgnoreError();
    ASSERT_TRUE(Leave(1, 1).ok());
    EXPECT_EQ(state(), RESTARTING);
    BeginInPods(1, ending());
    EXPECT_EQ(generation_, generation + 1);
  }
}

TEST_F(CoordinatorMoveTest, AStopThatComesBeforeTheCutJoinsAndDecides) {
  StartRun();
  SayLeaving(EMBEDDING_PS, 1).IgnoreError();
  ASSERT_TRUE(Wish(WishRequest::STOP).ok());
  ASSERT_TRUE(Leave(1, 1).ok()) << "begun for the move";
  EXPECT_EQ(state(), STOPPED);
  EXPECT_EQ(Log().last_cut()->left_for(), CutEntry::STOP);
  BeginInPods(1);
  EXPECT_EQ(state(), STOPPED);
}

TEST_F(CoordinatorMoveTest, AChangeOfSizeThatComesBeforeTheCutJoinsAndDecides) {
  JobConfig larger = job_;
  larger.mutable_embedding_ps()->set_replicas(4);
  StartRun();
  SayLeaving(EMBEDDING_PS, 1).IgnoreError();
  ASSERT_TRUE(Wish(WishRequest::SCALE, larger).ok());
  ASSERT_TRUE(Leave(1, 1).ok());
  EXPECT_EQ(state(), RESTARTING);
  EXPECT_EQ(Log().last_cut()->left_for(), CutEntry::SCALE);
  BeginInPods(1);
  EXPECT_EQ(Log().last_generation()->began(), BEGAN_SCALED);
  EXPECT_EQ(engine_->Status().roles_size(), 7);
}

TEST_F(CoordinatorMoveTest, AStopFollowsItsCutThoughTheCoordinatorDiesBetween) {
  options_.warn = nullptr;
  BeginNewRunInPods();
  StartRun();
  ASSERT_TRUE(Wish(WishRequest::STOP).ok());
  MakeCut(1);
  CommitCutRequest commit = CommitOf(1);
  commit.set_leave(true);
  commit.set_wish(1);
  disk_.SetHook([](const std::string& operation) {
    return operation.rfind("create /runs/small/log/00000004", 0) == 0
               ? absl::ResourceExhaustedError("no space left")
               : absl::OkStatus();
  });
  EXPECT_TRUE(Commit(commit).ok());
  ASSERT_TRUE(Log().entries().back().has_cut());
  EXPECT_EQ(state(), RUNNING);
  disk_.SetHook(nullptr);
  BeginInPods(1);
  EXPECT_EQ(state(), STOPPED);
  EXPECT_EQ(reason(), "stopped on request after cut_0001_000001 at step 10; nothing is lost");
  EXPECT_EQ(Log().end()->state(), STOPPED);
  EXPECT_EQ(generation_, 1u) << "nothing was claimed";
}

TEST_F(CoordinatorMoveTest, OnlyAMemberOfThisGenerationIsObeyed) {
  StartRun();
  HeartbeatRequest late = HeartbeatOf(EMBEDDING_PS, 1);
  late.set_leaving(true);
  late.mutable_envelope()->set_generation(generation_ + 1);
  EXPECT_FALSE(Call<HeartbeatAnswer>(kHeartbeat, late).ok());
  EXPECT_FALSE(SayLeaving(EMBEDDING_PS, 1, kFirst + 9).ok()) << "it is not registered";
  EXPECT_FALSE(Heartbeat(NN_WORKER, 0)->has_wish());
  EXPECT_EQ(state(), RUNNING);
}

TEST_F(CoordinatorMoveTest, BeforeTrainingThePlaceIsFreeAndTheGenerationGoesOn) {
  RegisterAll();
  HeartbeatRequest loading = HeartbeatOf(EMBEDDING_PS, 1);
  loading.set_ready(true);
  loading.set_leaving(true);
  ASSERT_TRUE(Heartbeat(EMBEDDING_PS, 1).ok());
  const auto told = Call<HeartbeatAnswer>(kHeartbeat, loading);
  ASSERT_TRUE(told.ok()) << told.status();
  EXPECT_EQ(told->state(), RESTARTING);
  EXPECT_EQ(told->ending().why(), Ending::MOVED);
  EXPECT_EQ(Heartbeat(EMBEDDING_PS, 1).status().code(), absl::StatusCode::kFailedPrecondition)
      << "a late one";
  for (const Role role : {DATA_LOADER, EMBEDDING_WORKER, EMBEDDING_PS, NN_WORKER}) {
    EXPECT_TRUE(Heartbeat(role, 0).ok());
  }
  EXPECT_EQ(state(), STARTING) << "its place is empty";
  ASSERT_TRUE(Register(EMBEDDING_PS, 1, kFirst + 1).ok());
  ASSERT_TRUE(Heartbeat(EMBEDDING_PS, 1, kFirst + 1).ok());
  EXPECT_EQ(state(), RUNNING);
  EXPECT_EQ(generation_, 1u);
}

TEST_F(CoordinatorMoveTest, BeforeTrainingThePlaceOfASilentMemberIsFreeToo) {
  RegisterAll();
  ASSERT_TRUE(Heartbeat(EMBEDDING_PS, 1).ok());
  ps1_beats_ = false;
  Load(10);
  EXPECT_EQ(state(), STARTING);
  ASSERT_TRUE(Register(EMBEDDING_PS, 1, kFirst + 1).ok());
  EXPECT_TRUE(Heartbeat(EMBEDDING_PS, 1, kFirst + 1).ok());
  EXPECT_EQ(state(), STARTING) << "it is no second process";
}

TEST_F(CoordinatorMoveTest, APlaceThatBecomesFreeMayBeTakenForTheWholeTimeOfAStart) {
  options_.timeouts.start_timeout_ms = 20000;
  for (const bool is_silent : {false, true}) {
    BeginNewRunInPods();
    RegisterAll();
    ps1_beats_ = true;
    Load(60);  // tables may load for longer than it may take until all are there
    EXPECT_EQ(state(), STARTING);
    ps1_beats_ = false;
    if (is_silent) {
      Load(8);
    } else {
      EXPECT_EQ(SayLeaving(EMBEDDING_PS, 1)->state(), RESTARTING);
    }
    Load(19);
    EXPECT_EQ(state(), STARTING);
    Load(3);
    EXPECT_EQ(state(), FAILED) << "the others hold what another run may wait for";
    EXPECT_EQ(reason(), "after 20 s there is still no embedding_ps 1");
    const RunLog log = Log();
    ASSERT_NE(log.end(), nullptr);
    EXPECT_EQ(log.end()->state(), FAILED);
  }
}

TEST_F(CoordinatorMoveTest, ASizeForWhichThereAreNoPodsIsDroppedAndTheRunGoesOnAsItWas) {
  options_.timeouts.start_timeout_ms = 20000;
  BeginNewRunInPods();
  JobConfig larger = job_;
  larger.mutable_embedding_ps()->set_replicas(4);
  StartRun();
  ASSERT_TRUE(Wish(WishRequest::SCALE, larger).ok());
  ASSERT_TRUE(Leave(1, 1).ok());
  BeginInPods(1);
  ASSERT_EQ(engine_->Status().roles_size(), 7);
  executor_.AdvanceBy(21 * 1000 * 1000);
  disk_executor_.RunReady();
  EXPECT_EQ(state(), RESTARTING);
  EXPECT_THAT(reason(), AllOf(HasSubstr("there is still no "), HasSubstr("embedding_ps 3"),
                              HasSubstr("the change of the job is dropped: ")));
  BeginInPods(1);
  EXPECT_EQ(engine_->Status().roles_size(), 5);
}

TEST_F(CoordinatorMoveTest, WhatTakesNoCutLeavesItsMachineAtOnce) {
  StartRun();
  MakeCut(1);
  CommitCutRequest commit = CommitOf(1);
  commit.set_last(true);
  ASSERT_TRUE(Commit(commit).ok());
  SayLeaving(EMBEDDING_PS, 1).IgnoreError();
  EXPECT_EQ(state(), RESTARTING) << "in the test pass";
  EXPECT_EQ(ending().why(), Ending::MOVED);
  BeginInPods(1);
  EXPECT_EQ(Log().last_generation()->began(), BEGAN_MOVED);
  EXPECT_EQ(CauseText(*Log().last_generation()), "moved: embedding_ps 1 leaves its machine");
}

TEST_F(CoordinatorMoveTest, ALastCutThatComesMeanwhileIsTheOneOfTheMove) {
  StartRun();
  SayLeaving(EMBEDDING_PS, 1).IgnoreError();
  MakeCut(1);
  CommitCutRequest commit = CommitOf(1);
  commit.set_last(true);
  ASSERT_TRUE(Commit(commit).ok());
  EXPECT_EQ(state(), RESTARTING);
  EXPECT_EQ(ending().why(), Ending::MOVED);
}

TEST_F(CoordinatorMoveTest, AMoveWhoseCutIsNotThereInTimeTellsWhatIsLost) {
  StartRun();
  ASSERT_TRUE(MakeAndCommit(1).ok());
  HeartbeatRequest beat = HeartbeatOf(NN_WORKER, 0);
  beat.mutable_train()->set_step(17);
  ASSERT_TRUE(Call<HeartbeatAnswer>(kHeartbeat, beat).ok());
  SayLeaving(EMBEDDING_PS, 1).IgnoreError();
  Beat(25, COORDINATOR);
  EXPECT_EQ(state(), RESTARTING);
  EXPECT_EQ(ending().why(), Ending::MOVED);
  EXPECT_THAT(reason(), AllOf(HasSubstr("within 25 s (stop_seconds)"),
                              HasSubstr("about 7 steps since are lost")));
  BeginInPods(1);
  EXPECT_EQ(Log().last_generation()->began(), BEGAN_MOVED);
}

TEST_F(CoordinatorMoveTest, TheCoordinatorItselfLeavesItsMachineInTheSameWay) {
  MoveCoordinator();
  EXPECT_EQ(state(), RESTARTING) << "its generation cannot go on without it";
  EXPECT_TRUE(IsOf(ending(), COORDINATOR, 0));
  BeginInPods(1);
  EXPECT_EQ(Log().last_generation()->began(), BEGAN_MOVED);
  StartRun();
  engine_->Move();
  EXPECT_TRUE(Asked().leave());
  ASSERT_TRUE(Leave(1, 1).ok());
  EXPECT_EQ(state(), RESTARTING);
  EXPECT_EQ(ending().why(), Ending::MOVED);
}

// When a node is drained, the coordinator's pod and its supervisor are gone, so only the log can
// record the move.
TEST_F(CoordinatorMoveTest, ACoordinatorThatGoesBeforeTrainingUsesNoRestartUpHoweverOften) {
  job_.set_max_restarts(0);
  BeginNewRunInPods();
  for (uint64_t generation = 1; generation <= 12; ++generation) {
    EXPECT_EQ(generation_, generation);
    ASSERT_EQ(state(), STARTING) << reason();
    MoveCoordinator();
    ASSERT_TRUE(Log().entries().back().has_left());
    EXPECT_EQ(Log().entries().back().left().generation(), generation);
    BeginInPods(1);
  }
  EXPECT_EQ(CauseText(*Log().last_generation()), "moved: the coordinator leaves its machine");
}

TEST_F(CoordinatorMoveTest, ADiskThatRefusesOrHangsDoesNotKeepWhoLeavesItsMachine) {
  options_.warn = nullptr;
  BeginNewRunInPods();
  Break("create /runs/small/log/");
  MoveCoordinator();
  EXPECT_EQ(state(), RESTARTING);
  EXPECT_EQ(ending().why(), Ending::MOVED);
  EXPECT_FALSE(Log().entries().back().has_left());
  disk_.SetHook(nullptr);
  BeginInPods(1);
  engine_->Move();  // and the disk does nothing
  EXPECT_EQ(state(), STARTING) << "the log is about to say it";
  executor_.AdvanceBy(1900 * 1000);
  EXPECT_EQ(state(), STARTING);
  executor_.AdvanceBy(200 * 1000);
  EXPECT_EQ(state(), RESTARTING);
  EXPECT_EQ(ending().why(), Ending::MOVED);
}

TEST_F(CoordinatorMoveTest, ALastCutSaysThatItIsTheOneOfTheMoveThoughAChangeOfSizeIsWished) {
  job_.set_max_restarts(0);
  BeginNewRunInPods();
  JobConfig larger = job_;
  larger.mutable_embedding_ps()->set_replicas(4);
  StartRun();
  ASSERT_TRUE(Wish(WishRequest::SCALE, larger).ok());
  SayLeaving(EMBEDDING_PS, 1).IgnoreError();
  MakeCut(1);
  CommitCutRequest commit = CommitOf(1);
  commit.set_last(true);
  ASSERT_TRUE(Commit(commit).ok());
  EXPECT_EQ(state(), RESTARTING);
  EXPECT_EQ(Log().last_cut()->left_for(), CutEntry::MOVE) << "a run that is trained has no size";
  BeginInPods(1);
  EXPECT_EQ(state(), STARTING);
  EXPECT_EQ(Log().last_generation()->began(), BEGAN_MOVED);
}

TEST_F(CoordinatorMoveTest, AMoveThatComesWhileALastCutIsAppendedIsAnEntryOfItsOwn) {
  job_.set_max_restarts(0);
  BeginNewRunInPods();
  StartRun();
  MakeCut(1);
  CommitCutRequest commit = CommitOf(1);
  commit.set_last(true);
  absl::StatusOr<HeartbeatAnswer> beat = absl::UnknownError("");
  WhileLinking([&] {
    HeartbeatRequest leaving = HeartbeatOf(EMBEDDING_PS, 1);
    leaving.set_leaving(true);
    Send(kHeartbeat, leaving, &beat);
  });
  ASSERT_TRUE(Commit(commit).ok());
  ASSERT_TRUE(beat.ok());
  EXPECT_EQ(state(), RESTARTING);
  EXPECT_EQ(ending().why(), Ending::MOVED);
  EXPECT_TRUE(Log().entries().back().has_left());
  disk_.SetHook(nullptr);
  BeginInPods(1);
  EXPECT_EQ(state(), STARTING);
  EXPECT_EQ(Log().last_generation()->began(), BEGAN_MOVED);
}

TEST_F(CoordinatorMoveTest, AStopThatComesWhileTheCutOfAMoveIsAppendedDecides) {
  StartRun();
  SayLeaving(EMBEDDING_PS, 1).IgnoreError();
  absl::StatusOr<WishAnswer> answer = absl::UnknownError("");
  WhileLinking([&] {
    WishRequest stop;
    stop.set_kind(WishRequest::STOP);
    Send(kWish, stop, &answer);
  });
  ASSERT_TRUE(Leave(1, 1).ok());
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(state(), STOPPED);
}

TEST_F(CoordinatorMoveTest, AStopThatHasJoinedHasATimeOfItsOwn) {
  StartRun();
  SayLeaving(EMBEDDING_PS, 1).IgnoreError();
  Beat(20, COORDINATOR);
  ASSERT_TRUE(Wish(WishRequest::STOP).ok());
  Beat(10, COORDINATOR);
  EXPECT_EQ(state(), RUNNING) << "the time of the move is over";
  Beat(16, COORDINATOR);
  EXPECT_EQ(state(), STOPPED);
  EXPECT_THAT(reason(), HasSubstr("without a last cut"));
}

TEST_F(CoordinatorMoveTest, ALossDuringAMoveIsAFailureOfItsOwn) {
  StartRun();
  SayLeaving(EMBEDDING_PS, 1).IgnoreError();
  Fail(NN_WORKER, 0, "the peer is away", absl::StatusCode::kUnavailable);
  EXPECT_EQ(state(), RESTARTING);
  EXPECT_EQ(ending().why(), Ending::MEMBER_FAILED);
}

TEST_F(CoordinatorMoveTest, WithALauncherASignalIsNoMove) {
  options_.in_pods = false;
  BeginNewRun();
  StartRun();
  SayLeaving(EMBEDDING_PS, 1).IgnoreError();
  EXPECT_FALSE(Heartbeat(NN_WORKER, 0)->has_wish());
  EXPECT_FALSE(Call<RegisterAnswer>(kRegister, RegisterOf(NN_WORKER, 0))->leaves());
}

TEST_F(CoordinatorMoveTest, WithALauncherAMemberThatFallsSilentBeforeTrainingIsLost) {
  options_.in_pods = false;
  BeginNewRun();
  RegisterAll();
  ps1_beats_ = false;
  ASSERT_TRUE(Heartbeat(EMBEDDING_PS, 1).ok());
  Load(10);
  EXPECT_EQ(state(), RESTARTING);
  EXPECT_TRUE(IsOf(ending(), EMBEDDING_PS, 1));
}

// A move must not give restarts back. Otherwise a run whose input crashes it would be restarted for
// ever if pods are evicted again and again.
TEST_F(CoordinatorMoveTest, AMoveNeitherUsesRestartsUpNorGivesAnyBack) {
  job_.set_max_restarts(1);
  BeginNewRunInPods();
  const Ending lost = EndingOf(Ending::MEMBER_LOST, NN_WORKER, 0, "nn_worker 0 is lost");
  BeginInPods(1, lost);
  EXPECT_EQ(Log().restarts_without_cut(), 1);
  MoveCoordinator();
  BeginInPods(1);
  EXPECT_EQ(Log().last_generation()->began(), BEGAN_MOVED);
  EXPECT_EQ(Log().restarts_without_cut(), 1);
  BeginInPods(1, lost);
  EXPECT_EQ(state(), FAILED) << "no restart is left, and the log says so";
  EXPECT_THAT(reason(), HasSubstr("restarted 1 time without a cut"));
  EXPECT_EQ(Log().end()->state(), FAILED);
}

}  // namespace
}  // namespace satrap
