// Wishes for cuts, stops and changes of size.

#include <string>
#include <utility>

#include "deploy/coordinator/testing/coordinator_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class CoordinatorWishTest : public CoordinatorFixture {
 protected:
  CutWish Asked() { return Heartbeat(NN_WORKER, 0)->wish(); }
  JobConfig LargerJob() const {
    JobConfig job = job_;
    job.mutable_embedding_ps()->set_replicas(4);
    return job;
  }
  // The log entry that announces the new size, after the entries of the only generation and of cut
  // 1.
  static constexpr char kAnnouncement[] = "/runs/small/log/00000004";
  static constexpr char kMayNotBeInTheLog[] =
      "the run continues from cut_0001_000001, and nothing is lost, but its change of size may "
      "not be in its log: the disk is away";
  // Starts a run and makes a wish for another size. The run then waits for the cut after which its
  // ranks leave.
  void StartRunThatScales() {
    BeginNewRun();
    StartRun();
    ASSERT_TRUE(Wish(WishRequest::SCALE, LargerJob()).ok());
  }
};

TEST_F(CoordinatorWishTest, AWishIsHandedToRank0UntilItsCutIsCommitted) {
  StartRun();
  EXPECT_FALSE(Heartbeat(NN_WORKER, 0)->has_wish());
  EXPECT_EQ(*Wish(WishRequest::CUT), 1u);
  EXPECT_EQ(*Wish(WishRequest::CUT), 2u);
  EXPECT_EQ(Asked().number(), 2u);
  EXPECT_FALSE(Asked().leave());
  EXPECT_FALSE(Heartbeat(DATA_LOADER, 0)->has_wish());
  MakeCut(1);
  CommitCutRequest commit = CommitOf(1);
  commit.set_wish(1);
  ASSERT_TRUE(Commit(commit).ok());
  EXPECT_EQ(engine_->Status().fulfilled_wish(), 1u);
  EXPECT_EQ(Asked().number(), 2u);
  MakeCut(2);
  commit = CommitOf(2);
  commit.set_wish(2);
  ASSERT_TRUE(Commit(commit).ok());
  EXPECT_FALSE(Heartbeat(NN_WORKER, 0)->has_wish());
  EXPECT_EQ(state(), RUNNING);
}

TEST_F(CoordinatorWishTest, AWishThatComesBeforeTheRunBeginsWaitsForIt) {
  RegisterAll();
  EXPECT_EQ(*Wish(WishRequest::CUT), 1u);
  HeartbeatRequest loading = HeartbeatOf(NN_WORKER, 0);
  loading.set_ready(false);
  EXPECT_FALSE(Call<HeartbeatAnswer>(kHeartbeat, loading)->has_wish());
  BeatAll();
  EXPECT_EQ(Asked().number(), 1u);
}

TEST_F(CoordinatorWishTest, AWishForAnotherRunIsRefused) {
  StartRun();
  WishRequest request;
  request.set_run_id(kRunId + 1);
  request.set_kind(WishRequest::STOP);
  EXPECT_EQ(Call<WishAnswer>(kWish, request).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_FALSE(Heartbeat(NN_WORKER, 0)->has_wish());
}

TEST_F(CoordinatorWishTest, ACutFulfilsNoWishThatNobodyHasWishedYet) {
  StartRun();
  EXPECT_EQ(*Wish(WishRequest::CUT), 1u);
  MakeCut(1);
  CommitCutRequest commit = CommitOf(1);
  commit.set_wish(9);
  ASSERT_TRUE(Commit(commit).ok());
  EXPECT_EQ(*Wish(WishRequest::CUT), 2u);
  EXPECT_EQ(Asked().number(), 2u);
}

TEST_F(CoordinatorWishTest, TheLastCutOfTheTrainingFulfilsEveryWishAndAStopAtOnce) {
  StartRun();
  EXPECT_EQ(*Wish(WishRequest::CUT), 1u);
  ASSERT_TRUE(Wish(WishRequest::STOP).ok());
  MakeCut(1);
  CommitCutRequest commit = CommitOf(1);
  commit.set_last(true);
  ASSERT_TRUE(Commit(commit).ok());
  EXPECT_EQ(engine_->Status().fulfilled_wish(), 2u);
  EXPECT_EQ(state(), STOPPED) << "only the test pass is left";
}

TEST_F(CoordinatorWishTest, AGenerationThatBeginsAfterTheTrainingTakesNoCutAndStopsAtOnce) {
  StartRun();
  MakeCut(1);
  CheckpointManifest manifest = *ReadManifest(Folder(1), &disk_);
  manifest.mutable_position()->set_next(RunPosition::FINISH);
  ASSERT_TRUE(WriteManifest(Folder(1), manifest, &disk_).ok());
  ASSERT_TRUE(Commit(CommitOf(1)).ok());
  Begin("x");
  StartRun();
  EXPECT_EQ(Wish(WishRequest::CUT).status().code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(Wish(WishRequest::STOP).ok());
  EXPECT_EQ(state(), STOPPED);
}

TEST_F(CoordinatorWishTest, AStopIsALastCutAndThenTheEnd) {
  StartRun();
  const uint64_t number = *Wish(WishRequest::STOP);
  EXPECT_EQ(*Wish(WishRequest::STOP), number) << "a repeated call";
  EXPECT_TRUE(Asked().leave());
  ASSERT_TRUE(Leave(1, number).ok());
  EXPECT_EQ(state(), STOPPED);
  EXPECT_EQ(reason(), "stopped on request after cut_0001_000001 at step 10; nothing is lost");
  executor_.AdvanceBy(60 * 1000 * 1000);
  EXPECT_EQ(state(), STOPPED);
  EXPECT_EQ(Wish(WishRequest::CUT).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(CoordinatorWishTest, AStopWhoseCutIsNotThereInTimeTellsWhatIsLost) {
  StartRun();
  ASSERT_TRUE(MakeAndCommit(1).ok());
  HeartbeatRequest beat = HeartbeatOf(NN_WORKER, 0);
  beat.mutable_train()->set_step(17);
  ASSERT_TRUE(Call<HeartbeatAnswer>(kHeartbeat, beat).ok());
  ASSERT_TRUE(Wish(WishRequest::STOP).ok());
  Beat(25, COORDINATOR);  // all members' heartbeats, for stop_seconds
  EXPECT_EQ(state(), STOPPED);
  EXPECT_THAT(reason(), AllOf(HasSubstr("within 25 s (stop_seconds)"),
                              HasSubstr("from cut_0001_000001 at step 10"),
                              HasSubstr("about 7 steps since are lost")));
}

TEST_F(CoordinatorWishTest, ALossDuringAStopIsAStop) {
  StartRun();
  ASSERT_TRUE(Wish(WishRequest::STOP).ok());
  Fail(EMBEDDING_WORKER, 0, "the peer is away", absl::StatusCode::kUnavailable);
  EXPECT_EQ(state(), STOPPED);
  EXPECT_THAT(reason(), AllOf(HasSubstr("the peer is away"), HasSubstr("no cut was committed"),
                              HasSubstr("at most the work since is lost")));
}

TEST_F(CoordinatorWishTest, AStopBeforeTheRunHasBegunIsAtOnce) {
  RegisterAll();
  ASSERT_TRUE(Wish(WishRequest::STOP).ok());
  EXPECT_EQ(state(), STOPPED);
  EXPECT_THAT(reason(), HasSubstr("nothing is lost"));
}

// The previous generation may have trained after the cut from which this one begins, whether this
// one is a restart after a failure or was asked for by a resume.
TEST_F(CoordinatorWishTest, AStopBeforeALaterGenerationHasBegunDoesNotClaimThatNothingIsLost) {
  const auto stop = [this](const std::string& start) {
    RegisterAll();
    ASSERT_TRUE(Wish(WishRequest::STOP).ok());
    EXPECT_EQ(state(), STOPPED);
    EXPECT_EQ(reason(), "stopped on request before training continued from " + start +
                            "; what earlier generations have trained after it, if any, is lost");
  };
  Begin("embedding_ps 0 was killed");
  stop("the beginning");
  Resume();
  StartRun();
  ASSERT_TRUE(MakeAndCommit(1).ok());
  Resume();
  stop("cut_0003_000001");
  Resume();
  StartRun();
  ASSERT_TRUE(Wish(WishRequest::STOP).ok());
  ASSERT_TRUE(Leave(1, 1).ok());
  Resume("cut_0003_000001");
  stop("cut_0003_000001");
}

TEST_F(CoordinatorWishTest, AStopBeforeAGenerationHasBegunThatFollowsALastCutLosesNothing) {
  const auto stop = [this](const std::string& cut) {
    ASSERT_TRUE(Wish(WishRequest::STOP).ok());
    EXPECT_EQ(reason(), "stopped on request; nothing is lost") << cut;
  };
  StartRun();
  ASSERT_TRUE(Wish(WishRequest::STOP).ok());
  ASSERT_TRUE(Leave(1, 1).ok());
  Resume();
  stop("of a stop");
  Resume();
  StartRun();
  ASSERT_TRUE(Wish(WishRequest::SCALE, LargerJob()).ok());
  ASSERT_TRUE(Leave(1, 1).ok());
  Begin();
  stop("of a scale");
  BeginNewRun();
  StartRun();
  MakeCut(1);
  CommitCutRequest commit = CommitOf(1);
  commit.set_last(true);
  ASSERT_TRUE(Commit(commit).ok());
  Resume();
  stop("of the training");
}

TEST_F(CoordinatorWishTest, AfterTheLastCutOfTheTrainingAStopIsAtOnceAndNoCutIsTaken) {
  StartRun();
  MakeCut(1);
  CommitCutRequest commit = CommitOf(1);
  commit.set_last(true);
  ASSERT_TRUE(Commit(commit).ok());
  EXPECT_EQ(state(), RUNNING);
  EXPECT_EQ(Wish(WishRequest::CUT).status().code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(Wish(WishRequest::STOP).ok());
  EXPECT_EQ(state(), STOPPED);
}

TEST_F(CoordinatorWishTest, AScaleIsALastCutAndThenTheNextGenerationWithTheNewJob) {
  StartRun();
  const uint64_t number = *Wish(WishRequest::SCALE, LargerJob());
  EXPECT_EQ(*Wish(WishRequest::SCALE, LargerJob()), number) << "a repeated call";
  EXPECT_EQ(Wish(WishRequest::STOP).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(Asked().leave());
  ASSERT_TRUE(Leave(1, number).ok());
  EXPECT_EQ(state(), RESTARTING);
  const RunLog log = Log();
  ASSERT_EQ(log.entries().size(), 4u);
  const GenerationEntry& next = log.entries()[3].generation();
  EXPECT_EQ(next.generation(), 2u);
  EXPECT_EQ(next.cut(), "cut_0001_000001");
  EXPECT_EQ(next.began(), BEGAN_SCALE_ANNOUNCED);
  EXPECT_EQ(next.job().embedding_ps().replicas(), 4);
  Begin();
  EXPECT_EQ(engine_->Status().roles_size(), 7);
  ASSERT_EQ(engine_->Status().restarts_size(), 1);
  EXPECT_EQ(engine_->Status().restarts(0).cause(), "scaled");
}

// After the cut the ranks have left, so the generation must end although the new size cannot be
// written to the log. That must not count as a failure.
TEST_F(CoordinatorWishTest, ASizeThatCannotBeAnnouncedIsNoFailureAndTheRunGoesOnAtTheOldSize) {
  for (const int max_restarts : {0, 1}) {
    job_.set_max_restarts(max_restarts);
    BeginNewRun();
    StartRun();
    ASSERT_TRUE(Wish(WishRequest::SCALE, LargerJob()).ok());
    Break("create /runs/small/log/00000004");
    EXPECT_TRUE(Leave(1, 1).ok()) << "the cut is committed";
    EXPECT_EQ(state(), RESTARTING);
    EXPECT_EQ(reason(),
              "the run continues from cut_0001_000001, and nothing is lost, because its change "
              "of size cannot be written into its log: no space left");
    disk_.SetHook(nullptr);
    Begin(reason());
    EXPECT_EQ(Log().last_generation()->cut(), "cut_0001_000001");
    EXPECT_EQ(engine_->Status().roles_size(), 5);
    StartRun();
    EXPECT_EQ(Fail(NN_WORKER, 0, "the peer is away", absl::StatusCode::kUnavailable).state(),
              max_restarts == 0 ? FAILED : RESTARTING)
        << "that is the first failure";
  }
}

// If the entry was linked although syncing failed, the next generation has the new size.
TEST_F(CoordinatorWishTest, ASizeWhoseAnnouncementCannotBeSyncedMayBeInTheLog) {
  for (const bool is_kept : {true, false}) {
    StartRunThatScales();
    disk_.SetHook([this](const std::string& operation) {
      return operation == "sync_folder /runs/small/log" && disk_.Exists(kAnnouncement)
                 ? absl::UnavailableError("the disk is away")
                 : absl::OkStatus();
    });
    EXPECT_TRUE(Leave(1, 1).ok()) << "the cut is committed";
    EXPECT_EQ(state(), RESTARTING);
    EXPECT_EQ(reason(), kMayNotBeInTheLog);
    disk_.SetHook(nullptr);
    if (!is_kept) {
      ASSERT_TRUE(disk_.Remove(kAnnouncement).ok()) << "as a power failure may";
    }
    Begin(reason());
    EXPECT_EQ(Log().last_generation()->cut(), "cut_0001_000001");
    EXPECT_EQ(engine_->Status().roles_size(), is_kept ? 7 : 5);
  }
}

TEST_F(CoordinatorWishTest, SoMayOneWhoseLinkHasFailedAndIsThereAllTheSame) {
  StartRunThatScales();
  disk_.SetHook([this](const std::string& operation) {
    if (operation.rfind("hard_link /runs/small/log/00000004", 0) != 0) return absl::OkStatus();
    disk_.Put(kAnnouncement, "");
    return absl::UnavailableError("the disk is away");
  });
  EXPECT_TRUE(Leave(1, 1).ok());
  EXPECT_EQ(reason(), kMayNotBeInTheLog);
}

TEST_F(CoordinatorWishTest, ASizeWhoseLinkHasFailedAndIsNotThereIsNotAnnounced) {
  StartRunThatScales();
  Break("hard_link /runs/small/log/00000004");
  EXPECT_TRUE(Leave(1, 1).ok());
  EXPECT_EQ(state(), RESTARTING);
  EXPECT_THAT(reason(), HasSubstr("change of size cannot be written into its log: no space left"));
}

TEST_F(CoordinatorWishTest, ASizeIsNotAnnouncedWhereAnotherCoordinatorHasBegunALaterGeneration) {
  StartRunThatScales();
  bool is_superseded = false;
  disk_.SetHook([&](const std::string& operation) {
    if (operation.rfind("create /runs/small/log/00000004", 0) == 0 &&
        !std::exchange(is_superseded, true)) {
      Supersede("cut_0001_000001");
    }
    return absl::OkStatus();
  });
  EXPECT_TRUE(Leave(1, 1).ok()) << "the cut is committed";
  EXPECT_EQ(state(), RESTARTING);
  EXPECT_EQ(reason(), "another coordinator has begun a later generation");
  EXPECT_EQ(Log().entries().size(), 4u);
}

TEST_F(CoordinatorWishTest, OfTwoScalesTheFirstCountsAndTheRunStaysInItsFolder) {
  StartRun();
  JobConfig first = LargerJob();
  first.set_run_dir("/elsewhere");
  ASSERT_TRUE(Wish(WishRequest::SCALE, first).ok());
  JobConfig second = LargerJob();
  second.mutable_embedding_ps()->set_replicas(9);
  EXPECT_EQ(Wish(WishRequest::SCALE, second).status().code(),
            absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(Leave(1, 1).ok());
  const RunLog log = Log();
  EXPECT_EQ(log.last_generation()->job().embedding_ps().replicas(), 4);
  EXPECT_EQ(log.last_generation()->job().run_dir(), kRun);
}

TEST_F(CoordinatorWishTest, AScaleThatChangesWhatMustNotChangeIsRefused) {
  StartRun();
  JobConfig job = LargerJob();
  job.set_seed(99);
  EXPECT_EQ(Wish(WishRequest::SCALE, job).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(Heartbeat(NN_WORKER, 0)->has_wish());
  EXPECT_TRUE(Wish(WishRequest::STOP).ok()) << "nothing is under way";
}

// The time for the stop runs out while a cut is being linked. The message counts that cut as
// committed.
TEST_F(CoordinatorWishTest, AStopWhoseTimeIsOverWhileACutIsLinkedTellsOnlyWhatIsLostAfterIt) {
  StartRun();
  HeartbeatRequest beat = HeartbeatOf(NN_WORKER, 0);
  beat.mutable_train()->set_step(12);
  ASSERT_TRUE(Call<HeartbeatAnswer>(kHeartbeat, beat).ok());
  ASSERT_TRUE(Wish(WishRequest::STOP).ok());
  MakeCut(1);
  WhileLinking([this] {
    executor_.JumpBy(25 * 1000 * 1000);
    executor_.RunReady();
  });
  Commit(CommitOf(1)).IgnoreError();  // answered WAIT because time has passed
  ASSERT_TRUE(Commit(CommitOf(1)).ok()) << "of every_seconds, not the last one";
  EXPECT_EQ(state(), STOPPED);
  EXPECT_THAT(reason(), AllOf(HasSubstr("from cut_0001_000001 at step 10"),
                              HasSubstr("about 2 steps since are lost")));
}

TEST_F(CoordinatorWishTest, AScaleThatWouldEndTrainingIsRefused) {
  job_.set_epochs(5);
  BeginNewRun();
  StartRun();
  HeartbeatRequest beat = HeartbeatOf(NN_WORKER, 0);
  beat.mutable_train()->set_epoch(2);
  beat.mutable_train()->set_step(40);
  ASSERT_TRUE(Call<HeartbeatAnswer>(kHeartbeat, beat).ok());
  JobConfig job = LargerJob();
  job.set_epochs(2);
  const absl::Status status = Wish(WishRequest::SCALE, job).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("training is in epoch 3"));
  job.set_epochs(3);
  job.set_max_steps(40);
  EXPECT_EQ(Wish(WishRequest::SCALE, job).status().code(), absl::StatusCode::kInvalidArgument);
  job.set_max_steps(41);
  EXPECT_TRUE(Wish(WishRequest::SCALE, job).ok());
}

TEST_F(CoordinatorWishTest, NobodyLeavesUnasked) {
  StartRun();
  EXPECT_EQ(Leave(1, 0).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(state(), RUNNING);
}

}  // namespace
}  // namespace satrap
