#include "deploy/coordinator/claim/generation_claim.h"

#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/file/testing/forwarding_file_system.h"
#include "deploy/coordinator/claim/testing/generation_claim_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST_F(GenerationClaimTest, TheFirstGenerationHasTheGivenJobAndBeginsFromNothing) {
  const auto claimed = Claim();
  ASSERT_TRUE(claimed.ok()) << claimed.status();
  EXPECT_EQ(claimed->generation, 1u);
  EXPECT_EQ(claimed->run_id, 0xabcu);
  EXPECT_EQ(claimed->cut_folder, "");
  EXPECT_EQ(claimed->job.embedding_ps().replicas(), 2);
  EXPECT_EQ(Log().last_generation()->began(), BEGAN_START);
  EXPECT_EQ(Log().entries()[0].unix_ms(), 1234u);
}

TEST_F(GenerationClaimTest, TheNextOneTakesRunJobAndNewestCutFromTheLog) {
  ASSERT_TRUE(Claim().ok());
  Commit(1, 1);
  Commit(1, 2);
  request_.run_id = 0xdef;
  request_.job.mutable_embedding_ps()->set_replicas(9);
  const auto claimed = Claim("embedding_ps 1 was killed");
  ASSERT_TRUE(claimed.ok()) << claimed.status();
  EXPECT_EQ(claimed->generation, 2u);
  EXPECT_EQ(claimed->run_id, 0xabcu);
  EXPECT_EQ(claimed->job.embedding_ps().replicas(), 2) << "a stale job file counts for nothing";
  EXPECT_EQ(claimed->cut_folder, "/runs/a/checkpoints/cut_0001_000002");
  EXPECT_EQ(claimed->position.step(), 20u);
  EXPECT_EQ(claimed->order_fingerprint, 7u);
  EXPECT_EQ(Log().last_generation()->ended().text(), "embedding_ps 1 was killed");
}

TEST_F(GenerationClaimTest, TheStorageIsCheckedBeforeAnythingIsWritten) {
  request_.check_storage = [] { return absl::FailedPreconditionError("no hard links"); };
  disk_.TakeOperations();
  EXPECT_EQ(Claim().status(), absl::FailedPreconditionError("no hard links"));
  EXPECT_TRUE(disk_.TakeOperations().empty());
  request_.drops_change = true;
  EXPECT_EQ(Claim("cannot begin").status(), absl::FailedPreconditionError("no hard links"));
  EXPECT_TRUE(disk_.TakeOperations().empty());
}

TEST_F(GenerationClaimTest, TheStorageOfAFinishedRunNeedsNoCheck) {
  ASSERT_TRUE(Claim().ok());
  RunLogEntry end;
  end.mutable_end();
  ASSERT_TRUE(Log().Append(end).ok());
  request_.check_storage = [] { return absl::FailedPreconditionError("read-only by now"); };
  EXPECT_TRUE(Claim().ok());
}

TEST_F(GenerationClaimTest, ARunFolderThatWasMovedIsTheOneOfTheRequest) {
  ASSERT_TRUE(Claim().ok());
  disk_.Put("/runs/b/log/00000001", disk_.ContentOf("/runs/a/log/00000001"));
  request_.job.set_run_dir("/runs/b");
  EXPECT_EQ(Claim()->job.run_dir(), "/runs/b");
}

TEST_F(GenerationClaimTest, SoIsTheFolderOfARunThatHasFinished) {
  ASSERT_TRUE(Claim().ok());
  RunLogEntry end;
  end.mutable_end()->mutable_result()->set_steps(3);
  ASSERT_TRUE(Log().Append(end).ok());
  for (const std::string entry : {"/log/00000001", "/log/00000002"}) {
    disk_.Put("/runs/b" + entry, disk_.ContentOf(kRun + entry));
  }
  request_.job.set_run_dir("/runs/b");
  EXPECT_EQ(Claim()->job.run_dir(), "/runs/b");
}

TEST_F(GenerationClaimTest, ACutWithoutAnOrderOfSamplesSaysNothingOfIt) {
  ASSERT_TRUE(Claim().ok());
  CheckpointManifest manifest = ManifestOf(1, 1);
  manifest.clear_order_fingerprint();
  Commit(manifest);
  EXPECT_FALSE(Claim("x")->order_fingerprint.has_value());
}

TEST_F(GenerationClaimTest, ALedgerThatContradictsItselfIsDamage) {
  ASSERT_TRUE(Claim().ok());
  CheckpointManifest manifest = ManifestOf(1, 1);
  manifest.mutable_ledger()->add_epochs()->add_done_splits(3);  // an incomplete pair
  Commit(manifest);
  const absl::Status status = Claim("x").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("cut_0001_000001/manifest: ledger: "),
                                      HasSubstr("resume RUN --from CUT")));
}

TEST_F(GenerationClaimTest, TellsTheLastFiveCauses) {
  request_.job.set_max_restarts(9);
  for (int i = 1; i <= 8; ++i) {
    ASSERT_TRUE(Claim("cause " + std::to_string(i - 1)).ok());
  }
  EXPECT_EQ(RecentCauses(Log()),
            "generation 3: cause 3; generation 4: cause 4; generation 5: cause 5; generation 6: "
            "cause 6; generation 7: cause 7");
}

TEST_F(GenerationClaimTest, OfTwoThatClaimAtOnceOneGetsTheGeneration) {
  ClaimRequest other = request_;
  other.writer = 2;
  other.run_id = 0x222;
  bool overtaken = false;
  disk_.SetHook([&](const std::string& operation) {
    if (operation.rfind("hard_link", 0) == 0 && !overtaken) {
      overtaken = true;
      EXPECT_TRUE(ClaimGeneration(other, &disk_).ok());
    }
    return absl::OkStatus();
  });
  EXPECT_EQ(Claim().status().code(), absl::StatusCode::kAlreadyExists);
  disk_.SetHook(nullptr);
  EXPECT_EQ(Log().entries().size(), 1u);
  EXPECT_EQ(Claim()->run_id, 0x222u);
}

TEST_F(GenerationClaimTest, ARunThatHasFinishedIsNotBegunAgain) {
  ASSERT_TRUE(Claim().ok());
  RunLogEntry end;
  end.mutable_end()->mutable_result()->set_steps(3);
  ASSERT_TRUE(Log().Append(end).ok());
  const auto claimed = Claim("the coordinator was killed");
  ASSERT_TRUE(claimed.ok()) << claimed.status();
  EXPECT_EQ(claimed->generation, 1u);
  ASSERT_NE(claimed->log.end(), nullptr);
  EXPECT_EQ(Log().entries().size(), 2u) << "nothing was appended";
  EXPECT_THAT(Resume().status().message(), HasSubstr("has finished"));
}

TEST_F(GenerationClaimTest, EndsTheRunAfterMaxRestartsWithoutACutAndTellsTheCauses) {
  ASSERT_TRUE(Claim().ok());
  ASSERT_TRUE(Claim("a PS was killed").ok());
  ASSERT_TRUE(Claim("a worker was killed").ok());
  const absl::Status status = Claim("a loader was killed").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("generation 1: a PS was killed"),
                                      HasSubstr("generation 2: a worker was killed")));
  EXPECT_EQ(Log().entries().size(), 3u);
}

TEST_F(GenerationClaimTest, ACutGivesARunAllItsRestartsAgain) {
  ASSERT_TRUE(Claim().ok());
  ASSERT_TRUE(Claim("x").ok());
  ASSERT_TRUE(Claim("x").ok());
  Commit(3, 1);
  EXPECT_TRUE(Claim("x").ok());
  EXPECT_TRUE(Claim("x").ok());
  EXPECT_FALSE(Claim("x").ok());
}

TEST_F(GenerationClaimTest, SoDoesAResume) {
  request_.job.set_max_restarts(0);
  ASSERT_TRUE(Claim().ok());
  EXPECT_FALSE(Claim("x").ok());
  ASSERT_TRUE(Resume().ok());
  EXPECT_EQ(Log().last_generation()->began(), BEGAN_RESUME);
}

TEST_F(GenerationClaimTest, AResumeBringsAnotherJobAndAnOlderCutForGood) {
  ASSERT_TRUE(Claim().ok());
  Commit(1, 1);
  Commit(1, 2);
  request_.job.mutable_embedding_ps()->set_replicas(5);
  const auto resumed = Resume("cut_0001_000001");
  ASSERT_TRUE(resumed.ok()) << resumed.status();
  EXPECT_EQ(resumed->job.embedding_ps().replicas(), 5);
  EXPECT_EQ(resumed->position.step(), 10u);
  const auto next = Claim("x");
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_EQ(next->job.embedding_ps().replicas(), 5);
  EXPECT_EQ(next->position.step(), 10u) << "not the newest cut, which was given up";
}

TEST_F(GenerationClaimTest, AResumeTakesOnlyCutsThatTheLogNames) {
  EXPECT_EQ(Resume("cut_0001_000001").status().code(), absl::StatusCode::kFailedPrecondition)
      << "the run has not begun";
  ASSERT_TRUE(Claim().ok());
  MakeCut(1, 4);
  disk_.Put("/copy/cut/manifest", disk_.ContentOf("/runs/a/checkpoints/cut_0001_000004/manifest"));
  for (const std::string from : {"cut_0001_000004", "/copy/cut", "../checkpoints/x"}) {
    const absl::Status status = Resume(from).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(status.message(), HasSubstr("no cut '" + from + "'"));
  }
  EXPECT_EQ(Log().entries().size(), 1u);
}

TEST_F(GenerationClaimTest, AFolderWithAnotherCutThanTheLogNamesIsRefusedAndTold) {
  ASSERT_TRUE(Claim().ok());
  Commit(1, 1);
  // Replace the cut by one with the same name but another checksum, such as a copy from another
  // run.
  CheckpointManifest other = ManifestOf(1, 1);
  other.add_table_files()->set_crc32c(5);
  ASSERT_TRUE(WriteManifest("/runs/a/checkpoints/cut_0001_000001", other, &disk_).ok());
  for (const absl::Status& status : {Claim("x").status(), Resume("cut_0001_000001").status()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(status.message(),
                AllOf(HasSubstr("/runs/a/checkpoints/cut_0001_000001 is not the cut"),
                      HasSubstr("has the checksum"), HasSubstr("resume RUN --from CUT")));
  }
  EXPECT_EQ(Log().entries().size(), 2u);
}

// The run's newest cut says that training ended after 2 epochs.
TEST_F(GenerationClaimTest, AResumeThatAsksForMoreEpochsTrainsOnInThisAndLaterGenerations) {
  request_.job.set_epochs(2);
  ASSERT_TRUE(Claim().ok());
  CheckpointManifest manifest = ManifestOf(1, 1);
  manifest.mutable_position()->set_epoch(2);
  manifest.mutable_position()->set_next(RunPosition::FINISH);
  Commit(manifest);
  EXPECT_EQ(Claim("x")->position.next(), RunPosition::FINISH);
  request_.job.set_epochs(3);
  EXPECT_EQ(Resume()->position.next(), RunPosition::RESUME);
  EXPECT_EQ(Claim("x")->position.next(), RunPosition::RESUME);
  EXPECT_EQ(Claim("x")->position.epoch(), 2u);
}

TEST_F(GenerationClaimTest, AResumeWithAnotherMetricJudgesAnewUntilACutOfItsOwn) {
  request_.job.mutable_evaluation()->set_metric(AUC);
  ASSERT_TRUE(Claim().ok());
  CheckpointManifest manifest = ManifestOf(1, 1);
  manifest.mutable_position()->mutable_best()->set_cut("cut_0001_000001");
  Commit(manifest);
  EXPECT_EQ(Claim("x")->judged_anew, "");
  request_.job.mutable_evaluation()->set_metric(LOGLOSS);
  for (const auto& claimed : {Resume(), Claim("x")}) {
    ASSERT_TRUE(claimed.ok()) << claimed.status();
    EXPECT_FALSE(claimed->position.has_best());
    EXPECT_THAT(claimed->judged_anew, HasSubstr("LOGLOSS from now on, but were judged by AUC"));
  }
  manifest = ManifestOf(4, 1);
  manifest.mutable_position()->mutable_best()->set_cut("cut_0004_000001");
  Commit(manifest);
  const auto claimed = Claim("x");
  EXPECT_EQ(claimed->position.best().cut(), "cut_0004_000001");
  EXPECT_EQ(claimed->judged_anew, "");
}

TEST_F(GenerationClaimTest, AResumeThatMovesTheEndToWhereTrainingIsAlreadyClaimsNothing) {
  request_.job.set_epochs(5);
  ASSERT_TRUE(Claim().ok());
  CheckpointManifest manifest = ManifestOf(1, 1);
  manifest.mutable_position()->set_epoch(1);
  for (const uint32_t epoch : {0u, 1u}) {
    manifest.mutable_ledger()->add_epochs()->set_epoch(epoch);
  }
  Commit(manifest);
  request_.job.set_epochs(1);
  const absl::Status status = Resume().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("epochs: must be at least 2"));
  EXPECT_EQ(Log().entries().size(), 2u);
  EXPECT_TRUE(Claim("x").ok()) << "of the job in the log";
}

TEST_F(GenerationClaimTest, AResumeThatChangesWhatMustNotChangeClaimsNothing) {
  ASSERT_TRUE(Claim().ok());
  request_.job.set_seed(77);
  EXPECT_EQ(Resume().status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Log().entries().size(), 1u);
}

TEST_F(GenerationClaimTest, TheSizeThatWasAnnouncedIsTakenOverAndIsNoRestart) {
  request_.job.set_max_restarts(0);
  ASSERT_TRUE(Claim().ok());
  RunLogEntry scale;
  scale.mutable_generation()->set_generation(2);
  scale.mutable_generation()->set_run_id(0xabc);
  *scale.mutable_generation()->mutable_job() = request_.job;
  scale.mutable_generation()->mutable_job()->mutable_embedding_ps()->set_replicas(4);
  scale.mutable_generation()->set_began(BEGAN_SCALE_ANNOUNCED);
  ASSERT_TRUE(Log().Append(scale).ok());
  const auto claimed = Claim("whatever the launcher thinks");
  ASSERT_TRUE(claimed.ok()) << claimed.status();
  EXPECT_EQ(claimed->generation, 3u);
  EXPECT_EQ(claimed->job.embedding_ps().replicas(), 4);
  EXPECT_EQ(Log().last_generation()->began(), BEGAN_SCALED);
  EXPECT_FALSE(Claim("a PS was killed").ok()) << "now a death counts";
}

// The ranks took a last cut and left in order to change the run's size, but the new size could not
// be written to the log.
TEST_F(GenerationClaimTest, ACutToLeaveIsNoFailureSoOneMoreGenerationMayFollowIt) {
  request_.job.set_max_restarts(0);
  ASSERT_TRUE(Claim().ok());
  Commit(1, 1);
  EXPECT_FALSE(Claim("a PS died").ok());
  MakeCut(1, 2);
  RunLogEntry entry;
  *entry.mutable_cut() = *CutFolders(kRun, 1, &disk_).Check(CutName(1, 2));
  entry.mutable_cut()->set_leave(true);
  ASSERT_TRUE(Log().Append(entry).ok());
  const auto claimed = Claim("the log cannot be written");
  ASSERT_TRUE(claimed.ok()) << claimed.status();
  EXPECT_EQ(claimed->generation, 2u);
  EXPECT_FALSE(Claim("a PS died").ok());
}

TEST_F(GenerationClaimTest, ACutThatIsDamagedOrGoneIsNamedAndNothingIsClaimed) {
  ASSERT_TRUE(Claim().ok());
  Commit(1, 1);
  disk_.Put("/runs/a/checkpoints/cut_0001_000001/manifest", "nonsense");
  const absl::Status damaged = Claim("x").status();
  EXPECT_EQ(damaged.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(damaged.message(), AllOf(HasSubstr("cut_0001_000001/manifest is damaged"),
                                       HasSubstr("resume RUN --from CUT")));
  ASSERT_TRUE(disk_.Remove("/runs/a/checkpoints/cut_0001_000001").ok());
  EXPECT_EQ(Claim("x").status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(Log().entries().size(), 2u);
}

TEST_F(GenerationClaimTest, RemovesWhatEarlierGenerationsLeftUncommitted) {
  ASSERT_TRUE(Claim().ok());
  Commit(1, 1);
  MakeCut(1, 2);
  disk_.Put("/runs/a/log/00000002.00000000000000ff.partial", "half");
  disk_.Put("/runs/a/checkpoints/mine/file", "a user's own");
  const auto claimed = Claim("x");
  ASSERT_TRUE(claimed.ok());
  EXPECT_THAT(claimed->warnings, testing::IsEmpty());
  EXPECT_TRUE(disk_.Exists("/runs/a/checkpoints/cut_0001_000001/manifest"));
  EXPECT_FALSE(disk_.Exists("/runs/a/checkpoints/cut_0001_000002"));
  EXPECT_FALSE(disk_.Exists("/runs/a/log/00000002.00000000000000ff.partial"));
  EXPECT_TRUE(disk_.Exists("/runs/a/checkpoints/mine/file"));
  EXPECT_EQ(disk_.TargetOf("/runs/a/checkpoints/latest"), "cut_0001_000001")
      << "the coordinator before died before it moved the link";
}

TEST_F(GenerationClaimTest, NothingIsRemovedBeforeTheClaim) {
  ASSERT_TRUE(Claim().ok());
  Commit(1, 1);
  MakeCut(1, 2);
  std::vector<std::string> removed;
  disk_.SetHook([&](const std::string& operation) {
    if (operation.rfind("hard_link", 0) == 0) return absl::AlreadyExistsError("taken");
    if (operation.rfind("remove /runs/a/checkpoints", 0) == 0) removed.push_back(operation);
    return absl::OkStatus();
  });
  EXPECT_FALSE(Claim("x").ok());
  EXPECT_THAT(removed, testing::IsEmpty());
}

TEST_F(GenerationClaimTest, TheJobOfARunThatBeginsIsValidatedAndThatOfAnEarlierBuildGoesOn) {
  const std::string config = testing::TempDir() + "job_to_claim.textproto";
  const auto write = [&](int64_t preload_ids) {
    JobConfig job = JobWithData(R"(
        csv { columns { name: 'y' kind: LABEL } columns { name: 'user' kind: ID } }
        train_files: 'train.csv'
        features { name: 'user' table: 'ids' })");
    job.mutable_data()->mutable_features(0)->set_preload_ids(preload_ids);
    job.set_run_dir(kRun);
    std::ofstream(config) << ResolvedJobText(job);
    request_.job = job;
    ResolveJob(&request_.job);
  };
  write(0);
  ASSERT_TRUE(ReadJobToClaim(config, &disk_).ok());
  write(30);
  EXPECT_THAT(std::string(ReadJobToClaim(config, &disk_).status().message()),
              HasSubstr("preload_ids: must be 0"));
  // The job in the log is not validated again, because an earlier build accepted it.
  ASSERT_TRUE(Claim().ok());
  const auto again = ReadJobToClaim(config, &disk_);
  ASSERT_TRUE(again.ok()) << again.status();
  request_.job = *again;
  EXPECT_TRUE(Claim("embedding_ps 0 was killed").ok());
  request_.job.mutable_embedding_ps()->set_replicas(3);
  const auto resumed = Resume();
  ASSERT_TRUE(resumed.ok()) << resumed.status();
  EXPECT_EQ(resumed->job.embedding_ps().replicas(), 3);
}

// A disk on which no folder can be listed, as if it belonged to another user.
class FoldersOfAnotherUser final : public ForwardingFileSystem {
 public:
  using ForwardingFileSystem::ForwardingFileSystem;
  absl::StatusOr<std::vector<std::string>> List(const std::string& folder) override {
    return absl::PermissionDeniedError(absl::StrCat("cannot read ", folder, ": Permission denied"));
  }
};

TEST_F(GenerationClaimTest, AFolderOfAnotherUserIsRefusedWithTheUserWhoNeedsRightsThere) {
  FoldersOfAnotherUser disk(&disk_);
  const absl::Status refused = ClaimGeneration(request_, &disk).status();
  EXPECT_TRUE(absl::IsPermissionDenied(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr("run_dir /runs/a cannot be used: cannot read /runs/a/"),
                    HasSubstr("Permission denied. This process runs as user "),
                    HasSubstr("which need the right to read and write there")));
  const std::string config = testing::TempDir() + "job_of_another_user.textproto";
  std::ofstream(config) << ResolvedJobText(request_.job);
  EXPECT_EQ(ReadJobToClaim(config, &disk).status(), refused);
}

}  // namespace
}  // namespace satrap
