// What the coordinator's engine does on disk: commits, the end of a run, the list of files; and the
// wishes that lead to commits.

#include <string>
#include <utility>
#include <vector>

#include "common/checkpoint/order_fingerprint.h"
#include "deploy/coordinator/coordinator_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class CoordinatorCommitTest : public CoordinatorFixture {
 protected:
  std::string Folder(uint64_t cut) const { return FolderOfCut(kRun, CutName(generation_, cut)); }
  // The files of a cut of this generation at step 10 * cut.
  void MakeCut(uint64_t cut, uint64_t order = 0) {
    CheckpointManifest manifest;
    manifest.set_version(kManifestVersion);
    manifest.set_step(10 * cut);
    manifest.set_generation(generation_);
    manifest.set_cut(cut);
    if (order != 0) manifest.set_order_fingerprint(order);
    manifest.set_dense_file("dense.bin");
    manifest.set_dense_bytes(4);
    manifest.mutable_position()->set_step(10 * cut);
    EpochLedger* epoch = manifest.mutable_ledger()->add_epochs();
    epoch->set_epoch(0);
    epoch->set_rows(5);
    epoch->add_done_splits(0);
    epoch->add_done_splits(0);
    disk_.Put(Folder(cut) + "/dense.bin", "1234");
    ASSERT_TRUE(WriteManifest(Folder(cut), manifest, &disk_).ok());
  }
  // Numbered as rank 0's calls of this generation: `cut` is also the call's number.
  CommitCutRequest CommitOf(uint64_t cut) const {
    CommitCutRequest request;
    *request.mutable_envelope() = ThisRun();
    request.mutable_call()->set_number(cut);
    request.mutable_call()->set_oldest_open(cut);
    request.set_cut(CutName(generation_, cut));
    request.set_seconds(0.5);
    return request;
  }
  absl::Status Commit(const CommitCutRequest& request) {
    const auto answer = Call<CommitCutAnswer>(kCommitCut, request);
    return answer.status();
  }
  absl::Status MakeAndCommit(uint64_t cut) {
    MakeCut(cut);
    return Commit(CommitOf(cut));
  }
  absl::StatusOr<uint64_t> Wish(WishRequest::Kind kind, const JobConfig& job = JobConfig()) {
    WishRequest request;
    request.set_run_id(kRunId);
    request.set_kind(kind);
    if (kind == WishRequest::SCALE) *request.mutable_job() = job;
    const auto answer = Call<WishAnswer>(kWish, request);
    if (!answer.ok()) return answer.status();
    return answer->number();
  }
  CutWish Asked() { return Heartbeat(NN_WORKER, 0)->wish(); }
  JobConfig LargerJob() const {
    JobConfig job = job_;
    job.mutable_embedding_ps()->set_replicas(4);
    return job;
  }
  // The operation that begins with `prefix` fails.
  void Break(const std::string& prefix) {
    disk_.SetHook([prefix](const std::string& operation) {
      return operation.rfind(prefix, 0) == 0 ? absl::ResourceExhaustedError("no space left")
                                             : absl::OkStatus();
    });
  }
};

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
  EXPECT_EQ(Log().entries().size(), 2u);
}

TEST_F(CoordinatorCommitTest, RefusesWhatIsNoWholeCutOfThisGeneration) {
  StartRun();
  EXPECT_EQ(Commit(CommitOf(1)).code(), absl::StatusCode::kDataLoss) << "there is no folder";
  MakeCut(2);
  disk_.Put(Folder(2) + "/dense.bin", "123");
  EXPECT_EQ(Commit(CommitOf(2)).code(), absl::StatusCode::kDataLoss);
  CommitCutRequest other = CommitOf(3);
  other.set_cut("cut_0007_000003");
  disk_.Put("/runs/small/checkpoints/cut_0007_000003/manifest",
            disk_.ContentOf(Folder(2) + "/manifest"));
  EXPECT_EQ(Commit(other).code(), absl::StatusCode::kFailedPrecondition);
  CommitCutRequest another_run = CommitOf(4);
  *another_run.mutable_envelope() = AnotherRun();
  EXPECT_EQ(Commit(another_run).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Log().entries().size(), 1u);
  EXPECT_EQ(state(), RUNNING);
}

TEST_F(CoordinatorCommitTest, CutsAscend) {
  StartRun();
  ASSERT_TRUE(MakeAndCommit(2).ok());
  MakeCut(1);
  CommitCutRequest older = CommitOf(1);
  older.mutable_call()->set_number(3);
  EXPECT_EQ(Commit(older).code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(CoordinatorCommitTest, NothingIsCommittedBeforeTheRunBeginsOrAfterTheGenerationHasEnded) {
  MakeCut(1);
  EXPECT_EQ(Commit(CommitOf(1)).code(), absl::StatusCode::kFailedPrecondition);
  StartRun();
  MakeCut(2);
  Fail(NN_WORKER, 0, "the peer is away", absl::StatusCode::kUnavailable);
  EXPECT_EQ(Commit(CommitOf(2)).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Log().entries().size(), 1u);
}

// The end comes while the files are checked.
TEST_F(CoordinatorCommitTest, ACommitThatIsOvertakenByTheEndIsRefused) {
  StartRun();
  MakeCut(1);
  absl::StatusOr<CommitCutAnswer> answer = absl::UnknownError("");
  Send(kCommitCut, CommitOf(1), &answer);
  Fail(NN_WORKER, 0, "the peer is away", absl::StatusCode::kUnavailable);
  disk_executor_.RunReady();
  EXPECT_EQ(answer.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Log().entries().size(), 1u);
}

TEST_F(CoordinatorCommitTest, AnEndThatComesDuringTheAppendFollowsIt) {
  StartRun();
  MakeCut(1);
  disk_.SetHook([this](const std::string& operation) {
    if (operation.rfind("hard_link", 0) == 0) {
      FailRequest fail;
      *fail.mutable_envelope() = ThisRun();
      fail.set_role(EMBEDDING_WORKER);
      fail.set_reason("the peer is away");
      fail.set_code(static_cast<int>(absl::StatusCode::kUnavailable));
      absl::StatusOr<FailAnswer> told = absl::UnknownError("");
      Send(kFail, fail, &told);
      EXPECT_EQ(told->state(), RESTARTING) << "the role is told at once";
      EXPECT_EQ(state(), RUNNING);
    }
    return absl::OkStatus();
  });
  EXPECT_TRUE(Commit(CommitOf(1)).ok());
  EXPECT_EQ(Log().entries().size(), 2u);
  EXPECT_EQ(state(), RESTARTING);
  EXPECT_EQ(reason(), "embedding_worker 0: the peer is away");
}

TEST_F(CoordinatorCommitTest, ACutThatCannotBeWrittenIntoTheLogIsRefusedAndTheRunGoesOn) {
  StartRun();
  Break("create /runs/small/log");
  EXPECT_EQ(MakeAndCommit(1).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(state(), RUNNING);
  disk_.SetHook(nullptr);
  EXPECT_TRUE(MakeAndCommit(2).ok());
}

// Rank 0 removes the files of a cut that is refused, and this one may be committed.
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

TEST_F(CoordinatorCommitTest, ACoordinatorThatIsSupersededCommitsNothingAndEnds) {
  StartRun();
  RunLog other = Log();
  RunLogEntry next;
  next.mutable_generation()->set_generation(2);
  ASSERT_TRUE(other.Append(next).ok());
  EXPECT_EQ(MakeAndCommit(1).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(state(), RESTARTING);
  EXPECT_THAT(reason(), HasSubstr("another coordinator"));
  EXPECT_EQ(Log().last_cut(), nullptr);
}

TEST_F(CoordinatorCommitTest, ACoordinatorLooksForItsSuccessorEveryFewSeconds) {
  StartRun();
  RunLog other = Log();
  RunLogEntry next;
  next.mutable_generation()->set_generation(2);
  ASSERT_TRUE(other.Append(next).ok());
  Beat(4, COORDINATOR);  // of all members
  EXPECT_EQ(state(), RESTARTING);
}

TEST_F(CoordinatorCommitTest, OldCutsAreRemovedAfterTheAnswer) {
  job_.mutable_checkpoint()->set_keep(1);
  disk_.Remove(kRun).IgnoreError();
  ASSERT_TRUE(disk_.CreateFolders(kRun).ok());
  Begin();
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
  disk_.Remove(kRun).IgnoreError();
  ASSERT_TRUE(disk_.CreateFolders(kRun).ok());
  Begin();
  EXPECT_EQ(Fail(NN_WORKER, 0, "first", absl::StatusCode::kUnavailable).state(), RESTARTING);
  Begin("nn_worker 0: first");
  EXPECT_EQ(Fail(NN_WORKER, 0, "second", absl::StatusCode::kUnavailable).state(), FAILED);
  EXPECT_THAT(reason(), AllOf(HasSubstr("nn_worker 0: second"), HasSubstr("max_restarts"),
                              HasSubstr("generation 1: nn_worker 0: first")));
}

TEST_F(CoordinatorCommitTest, ACommitGivesARunItsRestartsAgain) {
  job_.set_max_restarts(1);
  disk_.Remove(kRun).IgnoreError();
  ASSERT_TRUE(disk_.CreateFolders(kRun).ok());
  Begin();
  Begin("x");
  StartRun();
  ASSERT_TRUE(MakeAndCommit(1).ok());
  EXPECT_EQ(Fail(NN_WORKER, 0, "x", absl::StatusCode::kUnavailable).state(), RESTARTING);
}

TEST_F(CoordinatorCommitTest, ARunWithoutRestartsEndsAtItsFirstLossWithTheCauseAlone) {
  job_.set_max_restarts(0);
  disk_.Remove(kRun).IgnoreError();
  ASSERT_TRUE(disk_.CreateFolders(kRun).ok());
  Begin();
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
  EXPECT_EQ(Log().entries().size(), 2u);
  EXPECT_EQ(Log().end()->result().samples(), 7u);
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
           {KillPoint::COORDINATOR_BEFORE_LINK, 1}, {KillPoint::COORDINATOR_AFTER_LINK, 2}}) {
    disk_.Remove(kRun).IgnoreError();
    ASSERT_TRUE(disk_.CreateFolders(kRun).ok());
    JobConfig job;
    job.add_kill_points()->set_point(point);
    size_t entries_then = 0;
    KillPoints kill_points(job, 0, 1, [&] { entries_then = Log().entries().size(); });
    options_.kill_points = &kill_points;
    Begin();
    StartRun();
    ASSERT_TRUE(MakeAndCommit(1).ok());
    EXPECT_EQ(entries_then, entries) << KillPoint::Point_Name(point);
    engine_.reset();
    options_.kill_points = nullptr;
  }
}

// Wishes.

TEST_F(CoordinatorCommitTest, AWishIsHandedToRank0UntilItsCutIsCommitted) {
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

TEST_F(CoordinatorCommitTest, AStopIsALastCutAndThenTheEnd) {
  StartRun();
  const uint64_t number = *Wish(WishRequest::STOP);
  EXPECT_EQ(*Wish(WishRequest::STOP), number) << "a repeated call";
  EXPECT_TRUE(Asked().leave());
  MakeCut(1);
  CommitCutRequest commit = CommitOf(1);
  commit.set_wish(number);
  commit.set_leave(true);
  ASSERT_TRUE(Commit(commit).ok());
  EXPECT_EQ(state(), STOPPED);
  EXPECT_EQ(reason(), "stopped on request after cut_0001_000001 at step 10; nothing is lost");
  executor_.AdvanceBy(60 * 1000 * 1000);
  EXPECT_EQ(state(), STOPPED);
  EXPECT_EQ(Wish(WishRequest::CUT).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(CoordinatorCommitTest, AStopWhoseCutIsNotThereInTimeTellsWhatIsLost) {
  StartRun();
  ASSERT_TRUE(MakeAndCommit(1).ok());
  HeartbeatRequest beat = HeartbeatOf(NN_WORKER, 0);
  beat.mutable_train()->set_step(17);
  ASSERT_TRUE(Call<HeartbeatAnswer>(kHeartbeat, beat).ok());
  ASSERT_TRUE(Wish(WishRequest::STOP).ok());
  Beat(25, COORDINATOR);  // of all members; stop_seconds
  EXPECT_EQ(state(), STOPPED);
  EXPECT_THAT(reason(), AllOf(HasSubstr("within 25 s (stop_seconds)"),
                              HasSubstr("from cut_0001_000001 at step 10"),
                              HasSubstr("the 7 steps since are lost")));
}

TEST_F(CoordinatorCommitTest, ALossDuringAStopIsAStop) {
  StartRun();
  ASSERT_TRUE(Wish(WishRequest::STOP).ok());
  Fail(EMBEDDING_WORKER, 0, "the peer is away", absl::StatusCode::kUnavailable);
  EXPECT_EQ(state(), STOPPED);
  EXPECT_THAT(reason(), AllOf(HasSubstr("the peer is away"), HasSubstr("no cut was committed")));
}

TEST_F(CoordinatorCommitTest, AStopBeforeTheRunHasBegunIsAtOnce) {
  RegisterAll();
  ASSERT_TRUE(Wish(WishRequest::STOP).ok());
  EXPECT_EQ(state(), STOPPED);
}

TEST_F(CoordinatorCommitTest, AfterTheLastCutOfTheTrainingAStopIsAtOnceAndNoCutIsTaken) {
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

TEST_F(CoordinatorCommitTest, AScaleIsALastCutAndThenTheNextGenerationWithTheNewJob) {
  StartRun();
  const uint64_t number = *Wish(WishRequest::SCALE, LargerJob());
  EXPECT_EQ(*Wish(WishRequest::SCALE, LargerJob()), number) << "a repeated call";
  EXPECT_EQ(Wish(WishRequest::STOP).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(Asked().leave());
  MakeCut(1);
  CommitCutRequest commit = CommitOf(1);
  commit.set_wish(number);
  commit.set_leave(true);
  ASSERT_TRUE(Commit(commit).ok());
  EXPECT_EQ(state(), RESTARTING);
  const RunLog log = Log();
  ASSERT_EQ(log.entries().size(), 3u);
  const GenerationEntry& next = log.entries()[2].generation();
  EXPECT_EQ(next.generation(), 2u);
  EXPECT_EQ(next.cut(), "cut_0001_000001");
  EXPECT_EQ(next.cause(), "scale");
  EXPECT_EQ(next.job().embedding_ps().replicas(), 4);
  Begin();
  EXPECT_EQ(engine_->Status().roles_size(), 7);
  ASSERT_EQ(engine_->Status().restarts_size(), 1);
  EXPECT_EQ(engine_->Status().restarts(0).cause(), "scaled");
}

TEST_F(CoordinatorCommitTest, AScaleThatChangesWhatMustNotChangeIsRefused) {
  StartRun();
  JobConfig job = LargerJob();
  job.set_seed(99);
  EXPECT_EQ(Wish(WishRequest::SCALE, job).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(Heartbeat(NN_WORKER, 0)->has_wish());
  EXPECT_TRUE(Wish(WishRequest::STOP).ok()) << "nothing is under way";
}

TEST_F(CoordinatorCommitTest, NobodyLeavesUnasked) {
  StartRun();
  MakeCut(1);
  CommitCutRequest commit = CommitOf(1);
  commit.set_leave(true);
  EXPECT_EQ(Commit(commit).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(state(), RUNNING);
}

// The list of files.

class CoordinatorSplitsTest : public CoordinatorCommitTest {
 protected:
  absl::StatusOr<SplitList> Fix(int loader, uint64_t bytes) {
    FixSplitsRequest request;
    *request.mutable_envelope() = ThisRun();
    request.set_loader(static_cast<uint32_t>(loader));
    FileIdentity* file = request.mutable_splits()->add_streams()->add_files();
    file->set_path("day_0.csv");
    file->set_bytes(bytes);
    const auto answer = Call<FixSplitsAnswer>(kFixSplits, request);
    if (!answer.ok()) return answer.status();
    return answer->splits();
  }
};

TEST_F(CoordinatorSplitsTest, TheFirstListIsTheRunsAndGivesTheOrderFingerprint) {
  RegisterAll();
  const auto list = Fix(0, 10);
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_FALSE(Heartbeat(NN_WORKER, 0)->has_order_fingerprint()) << "not yet running";
  BeatAll();
  EXPECT_EQ(Heartbeat(NN_WORKER, 0)->order_fingerprint(), OrderFingerprint(job_, *list));
  EXPECT_EQ(disk_.List("/runs/small/splits")->size(), 1u);
}

TEST_F(CoordinatorSplitsTest, LoadersOfAGenerationMustAgree) {
  ASSERT_TRUE(Fix(0, 10).ok());
  EXPECT_TRUE(Fix(1, 10).ok());
  const absl::Status status = Fix(2, 11).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("data_loader 2 sees 11 bytes in day_0.csv, not 10"),
                                      HasSubstr("data_loader 0")));
}

TEST_F(CoordinatorSplitsTest, ALaterGenerationGetsTheListOfTheRun) {
  ASSERT_TRUE(Fix(0, 10).ok());
  Begin("x");
  EXPECT_EQ(Fix(0, 11)->streams(0).files(0).bytes(), 10u) << "the loader refuses the changed file";
}

TEST_F(CoordinatorSplitsTest, ACutOfAnotherOrderEndsTheRun) {
  ASSERT_TRUE(Fix(0, 10).ok());
  StartRun();
  MakeCut(1, /*order=*/1234);
  ASSERT_TRUE(Commit(CommitOf(1)).ok());
  Begin("x");
  const absl::Status status = Fix(0, 10).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(state(), FAILED);
  EXPECT_THAT(reason(), AllOf(HasSubstr("cut_0001_000001"), HasSubstr("orders samples")));
}

TEST_F(CoordinatorSplitsTest, ACutOfTheSameOrderGoesOn) {
  const auto list = Fix(0, 10);
  StartRun();
  MakeCut(1, OrderFingerprint(job_, *list));
  ASSERT_TRUE(Commit(CommitOf(1)).ok());
  Begin("x");
  EXPECT_TRUE(Fix(0, 10).ok());
  EXPECT_EQ(state(), STARTING);
}

}  // namespace
}  // namespace satrap
