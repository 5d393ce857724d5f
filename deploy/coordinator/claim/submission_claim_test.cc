// What a coordinator claims by its submission, and after ends and moves.

#include <string>
#include <vector>

#include "common/role/ending.h"
#include "deploy/coordinator/claim/testing/generation_claim_fixture.h"
#include "gmock/gmock.h"

namespace satrap {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class SubmissionClaimTest : public GenerationClaimTest {};

TEST_F(SubmissionClaimTest, AResumeIsOneSubmissionMoreHoweverOftenItsCoordinatorIsStarted) {
  request_.submission = 1;
  ASSERT_TRUE(Claim().ok());
  Commit(1, 1);
  Commit(1, 2);
  request_.submission = 2;
  request_.from = "cut_0001_000001";
  request_.job.mutable_embedding_ps()->set_replicas(3);
  for (uint64_t generation = 2; generation <= 3; ++generation) {
    const auto claimed = Claim("embedding_ps 1 was killed");
    ASSERT_TRUE(claimed.ok()) << claimed.status();
    EXPECT_EQ(claimed->generation, generation);
    EXPECT_EQ(claimed->submission, 2u);
    EXPECT_EQ(claimed->job.embedding_ps().replicas(), 3);
    EXPECT_EQ(Log().last_generation()->began(), generation == 2 ? BEGAN_RESUME : BEGAN_RESTART);
    Commit(generation, 1);
  }
  EXPECT_EQ(Log().next_start(), "cut_0003_000001") << "not the cut of --from again";
  request_.job.mutable_embedding_ps()->set_replicas(9);
  EXPECT_EQ(Claim("x")->job.embedding_ps().replicas(), 3) << "nor another job";
}

TEST_F(SubmissionClaimTest, AStorageThatDoesNotWorkHereIsNoEndOfASubmissionThatHasBegun) {
  const absl::Status broken = absl::FailedPreconditionError("no hard links");
  request_.check_storage = [&broken] { return broken; };
  request_.submission = 1;
  EXPECT_EQ(Claim().status(), broken) << "nothing has begun";
  request_.check_storage = nullptr;
  ASSERT_TRUE(Claim().ok());
  request_.check_storage = [&broken] { return broken; };
  const absl::Status again = Claim("x").status();
  EXPECT_EQ(FailureOf(COORDINATOR, 0, again).kind(), Ending::MOUNT_AWAY);
  EXPECT_EQ(again.message(),
            "the run has begun, and continues once its storage works again: no hard links");
  request_.submission = 2;
  EXPECT_EQ(Claim().status(), broken) << "a resume has not begun";
  request_.submission = 0;
  EXPECT_EQ(Claim("x").status(), broken) << "somebody sits before a launcher";
}

TEST_F(SubmissionClaimTest, TheFilesOfAJobAreCheckedWhenASubmissionOfPodsBegins) {
  const absl::Status missing = absl::NotFoundError("no clicks");
  std::vector<int> checked;  // the embedding PSs of the jobs
  request_.check_files = [&](const JobConfig& job) {
    checked.push_back(job.embedding_ps().replicas());
    return missing;
  };
  request_.submission = 1;
  EXPECT_EQ(Claim().status(), missing);
  EXPECT_TRUE(Log().entries().empty());
  request_.check_files = nullptr;
  ASSERT_TRUE(Claim().ok());
  request_.check_files = [&](const JobConfig& job) {
    checked.push_back(job.embedding_ps().replicas());
    return missing;
  };
  EXPECT_TRUE(Claim("x").ok()) << "the submission has begun";
  request_.submission = 2;
  request_.job.mutable_embedding_ps()->set_replicas(3);
  const size_t entries = Log().number();
  EXPECT_EQ(Claim().status(), missing) << "a resume may have other files";
  EXPECT_EQ(Log().number(), entries);
  EXPECT_THAT(checked, ElementsAre(2, 3));
  request_.submission = 0;
  EXPECT_TRUE(Claim("x").ok()) << "the command line has checked a launcher's";
}

TEST_F(SubmissionClaimTest, AModelToBeginFromIsNeededUntilTheRunHasACut) {
  request_.job.set_init_from("/models/a");
  std::vector<std::string> models;
  request_.check_files = [&](const JobConfig& job) {
    models.push_back(job.init_from());
    return absl::OkStatus();
  };
  request_.submission = 1;
  ASSERT_TRUE(Claim().ok());
  request_.submission = 2;
  ASSERT_TRUE(Claim().ok());
  Commit(2, 1);
  request_.submission = 3;
  const auto claimed = Claim();
  ASSERT_TRUE(claimed.ok()) << claimed.status();
  EXPECT_THAT(models, ElementsAre("/models/a", "/models/a", ""));
  EXPECT_EQ(claimed->job.init_from(), "/models/a") << "the job itself is the same";
}

TEST_F(SubmissionClaimTest, ALaunchersResumeIsTheNextSubmission) {
  ASSERT_TRUE(Claim().ok());
  EXPECT_EQ(Log().last_generation()->submission(), 1u);
  ASSERT_TRUE(Claim("x").ok());
  EXPECT_EQ(Log().last_generation()->submission(), 1u);
  ASSERT_TRUE(Resume().ok());
  EXPECT_EQ(Log().last_generation()->submission(), 2u);
  ASSERT_TRUE(Claim("x").ok());
  EXPECT_EQ(Log().last_generation()->submission(), 2u);
}

TEST_F(SubmissionClaimTest, ACoordinatorOfAnEarlierSubmissionClaimsNothing) {
  request_.submission = 2;
  ASSERT_TRUE(Claim().ok());
  const size_t entries = Log().number();
  request_.submission = 1;
  const auto claimed = Claim("x");
  ASSERT_TRUE(claimed.ok()) << claimed.status();
  EXPECT_TRUE(claimed->superseded);
  EXPECT_EQ(claimed->run_id, 0xabcu);
  EXPECT_EQ(Log().number(), entries);
}

TEST_F(SubmissionClaimTest, AnEndIsServedUntilALaterSubmissionComes) {
  request_.submission = 1;
  ASSERT_TRUE(Claim().ok());
  RunLogEntry end;
  end.mutable_end()->set_state(FAILED);
  end.mutable_end()->set_submission(1);
  ASSERT_TRUE(Log().Append(end).ok());
  disk_.TakeOperations();
  auto claimed = Claim("x");
  ASSERT_TRUE(claimed.ok()) << claimed.status();
  ASSERT_NE(claimed->log.end(), nullptr);
  EXPECT_FALSE(claimed->superseded);
  EXPECT_THAT(disk_.TakeOperations(), testing::Contains("sync_folder /runs/a/log"))
      << "whoever is told relies on it";
  EXPECT_EQ(Log().entries().size(), 2u);
  request_.submission = 2;
  claimed = Claim("x");
  ASSERT_TRUE(claimed.ok()) << claimed.status();
  EXPECT_EQ(claimed->log.end(), nullptr);
  EXPECT_EQ(Log().last_generation()->began(), BEGAN_RESUME);
}

TEST_F(SubmissionClaimTest, AfterTheCutOfAStopTheEndIsAllThatFollows) {
  for (const uint64_t submission : {0, 1}) {
    disk_.Remove(kRun).IgnoreError();
    ASSERT_TRUE(disk_.CreateFolders(kRun).ok());
    request_.submission = submission;
    ASSERT_TRUE(Claim().ok());
    Commit(ManifestOf(1, 1), CutEntry::STOP);
    const auto claimed = Claim("the coordinator was killed");
    ASSERT_TRUE(claimed.ok()) << claimed.status();
    ASSERT_NE(Log().end(), nullptr);
    EXPECT_EQ(Log().end()->state(), STOPPED);
    EXPECT_EQ(Log().end()->submission(), 1u);
    EXPECT_EQ(Log().last_generation()->generation(), 1u);
    EXPECT_EQ(claimed->log.end()->ending().loss(), Ending::NOTHING);
  }
}

TEST_F(SubmissionClaimTest, AResumeAfterTheCutOfAStopNeedsNoEndBefore) {
  ASSERT_TRUE(Claim().ok());
  Commit(ManifestOf(1, 1), CutEntry::STOP);
  EXPECT_EQ(Resume()->generation, 2u);
  EXPECT_EQ(Log().entries().size(), 3u);
}

// The programs may have been replaced by ones without CUDA since the user asked for the job.
TEST_F(SubmissionClaimTest, AResumeWhoseJobCannotBeStartedGoesOnWithTheEarlierJobAfterAnEnd) {
  for (const RunState state : {STOPPED, FAILED}) {
    disk_.Remove(kRun).IgnoreError();
    ASSERT_TRUE(disk_.CreateFolders(kRun).ok());
    request_.job.mutable_embedding_ps()->set_replicas(2);
    ASSERT_TRUE(Claim().ok());
    Commit(1, 1);
    request_.job.mutable_embedding_ps()->set_replicas(3);
    ASSERT_TRUE(Resume().ok());
    RunLogEntry end;
    end.mutable_end()->set_state(state);
    end.mutable_end()->set_submission(2);
    ASSERT_TRUE(Log().Append(end).ok());
    request_.drops_change = true;
    auto claimed = Claim("there is no card");
    ASSERT_TRUE(claimed.ok()) << claimed.status();
    EXPECT_EQ(claimed->log.end(), nullptr);
    EXPECT_EQ(claimed->generation, 3u);
    EXPECT_EQ(claimed->submission, 3u);
    EXPECT_EQ(claimed->job.embedding_ps().replicas(), 2);
    EXPECT_EQ(Log().last_generation()->began(), BEGAN_RESUME);
    ASSERT_TRUE(Log().entries()[Log().entries().size() - 2].has_dropped());
    request_.drops_change = false;
    claimed = Claim("x");
    ASSERT_TRUE(claimed.ok()) << claimed.status();
    EXPECT_EQ(claimed->submission, 3u);
    EXPECT_EQ(claimed->job.embedding_ps().replicas(), 2);
  }
}

TEST_F(SubmissionClaimTest, AChangeThatIsDroppedWithinASubmissionMakesNoOther) {
  ASSERT_TRUE(Claim().ok());
  Commit(1, 1);
  request_.job.mutable_embedding_ps()->set_replicas(3);
  ASSERT_TRUE(Resume().ok());
  request_.drops_change = true;
  const auto claimed = Claim("there is no card");
  ASSERT_TRUE(claimed.ok()) << claimed.status();
  EXPECT_EQ(claimed->submission, 2u);
  EXPECT_EQ(Log().last_generation()->began(), BEGAN_RESTART);
}

TEST_F(SubmissionClaimTest, InPodsARunWithoutARestartLeftHasFailed) {
  request_.submission = 1;
  request_.job.set_max_restarts(0);
  ASSERT_TRUE(Claim().ok());
  const auto claimed = Claim("embedding_ps 1 was killed");
  ASSERT_TRUE(claimed.ok()) << claimed.status();
  ASSERT_NE(claimed->log.end(), nullptr);
  EXPECT_EQ(claimed->log.end()->state(), FAILED);
  EXPECT_THAT(claimed->log.end()->ending().text(),
              HasSubstr("embedding_ps 1 was killed\n  and the run has restarted 0 times"));
  EXPECT_EQ(claimed->generation, 1u);
}

// Without an END, processes would be started again and again, and would hold their pods for ever.
TEST_F(SubmissionClaimTest, InPodsARunWhoseCutIsDamagedHasFailedAndAResumeIsRefused) {
  request_.submission = 1;
  ASSERT_TRUE(Claim().ok());
  Commit(1, 1);
  disk_.Put("/runs/a/checkpoints/cut_0001_000001/manifest", "x");
  auto claimed = Claim("embedding_ps 1 was killed");
  ASSERT_TRUE(claimed.ok()) << claimed.status();
  ASSERT_NE(claimed->log.end(), nullptr);
  EXPECT_EQ(claimed->log.end()->state(), FAILED);
  EXPECT_EQ(claimed->log.end()->submission(), 1u);
  EXPECT_THAT(claimed->log.end()->ending().text(),
              HasSubstr("the run cannot continue from its cut: "));
  EXPECT_EQ(claimed->log.end()->ending().advice(), Ending::RESUME_FROM_ANOTHER_CUT);
  EXPECT_EQ(claimed->generation, 1u);
  const size_t entries = Log().number();
  request_.submission = 2;
  EXPECT_EQ(Claim().status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(Log().number(), entries) << "the log knows nothing of that submission";
}

TEST_F(SubmissionClaimTest, ALaunchersRunWhoseCutIsDamagedIsLeftAsItIs) {
  ASSERT_TRUE(Claim().ok());
  Commit(1, 1);
  disk_.Put("/runs/a/checkpoints/cut_0001_000001/manifest", "x");
  EXPECT_EQ(Claim("x").status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(Log().end(), nullptr);
}

TEST_F(SubmissionClaimTest, AGenerationThatFollowsAMoveIsNoRestart) {
  request_.job.set_max_restarts(0);
  ASSERT_TRUE(Claim().ok());
  Commit(ManifestOf(1, 1), CutEntry::MOVE);
  ASSERT_TRUE(Claim().ok()) << "though the coordinator is gone that would say so";
  EXPECT_EQ(Log().last_generation()->began(), BEGAN_MOVED);
  request_.ended.set_why(Ending::MOVED);
  ASSERT_TRUE(Claim("embedding_ps 1 leaves its machine").ok()) << "without a cut";
  EXPECT_EQ(Log().last_generation()->began(), BEGAN_MOVED);
  request_.ended.Clear();
  RunLogEntry left;
  left.mutable_left()->set_generation(3);
  left.mutable_left()->mutable_ended()->set_why(Ending::MOVED);
  left.mutable_left()->mutable_ended()->set_text("the coordinator leaves its machine");
  ASSERT_TRUE(Log().Append(left).ok());
  ASSERT_TRUE(Claim("the container was started again").ok()) << "and nobody else is left";
  EXPECT_EQ(Log().last_generation()->began(), BEGAN_MOVED);
  EXPECT_EQ(Log().last_generation()->ended().text(), "the coordinator leaves its machine");
  EXPECT_EQ(RecentCauses(Log()), "");
}

}  // namespace
}  // namespace satrap
