#include "deploy/launcher/process/run_progress.h"

#include <string>

#include "deploy/launcher/testing/logged_run.h"
#include "gmock/gmock.h"

namespace satrap {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class RunProgressTest : public LoggedRunTest {
 protected:
  RunProgress Read() const {
    const auto progress = ReadRunProgress(dir_);
    EXPECT_TRUE(progress.ok()) << progress.status();
    return progress.value_or(RunProgress());
  }
};

StatusAnswer At(uint64_t step, uint64_t samples) {
  StatusAnswer status;
  status.mutable_train()->set_step(step);
  status.mutable_train()->set_samples(samples);
  return status;
}

TEST_F(RunProgressTest, ARunWithoutALogIsAtTheBeginning) {
  const RunProgress progress = Read();
  EXPECT_EQ(progress.generation, 0u);
  EXPECT_FALSE(progress.job.has_value());
  EXPECT_EQ(BeginningText(progress), "the beginning");
  EXPECT_EQ(LossText(progress, At(0, 0)), "at most the work after it is lost");
  EXPECT_EQ(LossText(progress, At(12, 3000)), "about 12 steps (3,000 samples) after it are lost");
}

TEST_F(RunProgressTest, GoesOnFromTheNewestCut) {
  WriteCut(dir_, 1, 2, 1200, 9000);
  Append("generation { generation: 1 job { name: 'first' } cause: 'start' }");
  Append("cut { generation: 1 cut: 'cut_0001_000001' step: 800 }");
  Append("cut { generation: 1 cut: 'cut_0001_000002' step: 1200 }");
  Append("generation { generation: 2 cut: 'cut_0001_000002' job { name: 'second' } cause: 'x' }");
  const RunProgress progress = Read();
  EXPECT_EQ(progress.generation, 2u);
  EXPECT_EQ(progress.began, BEGAN_RESTART);
  EXPECT_EQ(progress.job->name(), "second");
  EXPECT_EQ(BeginningText(progress), "step 1,200 (cut_0001_000002)");
  EXPECT_EQ(LossText(progress, At(1200, 9000)), "at most the work after it is lost")
      << "steps may have followed the last report";
  EXPECT_EQ(LossText(progress, At(1300, 10000)),
            "about 100 steps (1,000 samples) after it are lost");
  EXPECT_FALSE(progress.result.has_value());
}

TEST_F(RunProgressTest, ARunTakenBackToAnOlderCutStaysThere) {
  Append("cut { generation: 1 cut: 'cut_0001_000001' step: 800 }");
  Append("cut { generation: 1 cut: 'cut_0001_000002' step: 1200 }");
  Append("generation { generation: 2 cut: 'cut_0001_000001' cause: 'resume' }");
  EXPECT_EQ(BeginningText(Read()), "step 800 (cut_0001_000001)");
  Append("cut { generation: 3 cut: 'cut_0003_000001' step: 900 }");
  EXPECT_EQ(BeginningText(Read()), "step 900 (cut_0003_000001)");
}

TEST_F(RunProgressTest, HasTheResultOfAFinishedRun) {
  Append("generation { generation: 1 }");
  Append("end { result { steps: 77 } }");
  EXPECT_EQ(Read().result->steps(), 77u);
}

TEST_F(RunProgressTest, NoWorkIsLostAfterTheLastCutOfATraining) {
  Append("generation { generation: 1 }");
  Append("cut { generation: 1 cut: 'cut_0001_000001' step: 800 last: true }");
  StatusAnswer status = At(800, 0);
  status.set_generation(1);
  EXPECT_EQ(LossText(Read(), status), "no work is lost");
  Append("generation { generation: 2 cut: 'cut_0001_000001' }");
  status.set_generation(2);
  EXPECT_EQ(LossText(Read(), status), "at most the work after it is lost")
      << "it may have been resumed with more epochs";
  status.mutable_train()->set_phase("testing");
  EXPECT_EQ(LossText(Read(), status), "no work is lost");
}

TEST_F(RunProgressTest, ADamagedNewestCutIsNotThePlaceToGoOnFrom) {
  WriteCut(dir_, 1, 1, 800, 5000);
  Append("cut { generation: 1 cut: 'cut_0001_000001' step: 800 }");
  EXPECT_EQ(ResumeText(dir_, Read(), "RUN"),
            "`satrap resume RUN` continues from step 800 (cut_0001_000001)");
  WriteCut(dir_, 1, 1, 900, 5000);
  const std::string text = ResumeText(dir_, Read(), "RUN");
  EXPECT_THAT(text, AllOf(HasSubstr("the newest cut, cut_0001_000001, is damaged: "),
                          HasSubstr("of step 900"), HasSubstr("`satrap resume RUN --from CUT`")));
  EXPECT_EQ(BeginningText(Read()), "step 800 (cut_0001_000001)") << "as the log has it";
}

// The log is in the form of older builds, which did not write `began`.
TEST_F(RunProgressTest, TellsWhyEachGenerationAfterTheFirstBegan) {
  Append("generation { generation: 1 cause: 'start' }");
  Append("unix_ms: 5000 cut { generation: 1 cut: 'cut_0001_000001' step: 800 }");
  Append("generation { generation: 2 cut: 'cut_0001_000001' cause: 'scale' }");
  Append("generation { generation: 3 cut: 'cut_0001_000001' cause: 'scaled' }");
  Append("generation { generation: 4 cut: 'cut_0001_000001' cause: 'killed' }");
  const RunProgress progress = Read();
  ASSERT_EQ(progress.restarts.size(), 2u) << "the announcement is no generation of its own";
  EXPECT_EQ(progress.restarts[0].cause(), "scaled");
  EXPECT_EQ(progress.restarts[1].generation(), 4u);
  EXPECT_EQ(progress.restarts[1].cause(), "killed");
  EXPECT_EQ(progress.restarts[1].from_step(), 800u);
  EXPECT_EQ(progress.cut_unix_ms, 5000u);
}

TEST_F(RunProgressTest, ADroppedChangeIsToldAndTheJobOfBeforeIsTheNext) {
  Append("generation { generation: 1 job { name: 'first' } }");
  Append("running { generation: 1 }");
  Append("generation { generation: 2 began: BEGAN_SCALE_ANNOUNCED job { name: 'second' } }");
  EXPECT_EQ(Read().job->name(), "second");
  EXPECT_EQ(Read().job_before->name(), "first");
  Append("generation { generation: 3 began: BEGAN_SCALED job { name: 'second' } }");
  Append("dropped { generation: 3 change: 'name' ended { text: 'no card' } }");
  const RunProgress progress = Read();
  EXPECT_EQ(progress.job->name(), "first");
  EXPECT_TRUE(progress.drops_newest);
  ASSERT_EQ(progress.dropped.size(), 1u);
  EXPECT_EQ(progress.dropped[0].ended().text(), "no card");
  Append("generation { generation: 4 began: BEGAN_RESTART job { name: 'first' } }");
  EXPECT_FALSE(Read().drops_newest);
  EXPECT_FALSE(Read().job_before.has_value());
}

TEST_F(RunProgressTest, ACompactedLogTellsTheSameOfItsGenerations) {
  Append("generation { generation: 1 began: BEGAN_START }");
  Append("cut { generation: 1 cut: 'cut_0001_000001' step: 800 }");
  Append(
      "generation { generation: 2 cut: 'cut_0001_000001' began: BEGAN_RESTART ended { text: "
      "'killed' } }");
  Append("cut { generation: 2 cut: 'cut_0002_000001' step: 900 }");
  auto log = RunLog::Open(dir_, DiskFileSystem());
  ASSERT_TRUE(log.ok() && log->Compact(1).ok() && log->RemoveCompacted(100).ok());
  const RunProgress progress = Read();
  ASSERT_EQ(progress.restarts.size(), 1u);
  EXPECT_EQ(progress.restarts[0].from_step(), 800u) << "the cut's own entry is gone";
  EXPECT_EQ(progress.restarts[0].cause(), "killed");
  EXPECT_EQ(progress.cut->step(), 900u);
}

TEST_F(RunProgressTest, OnlyAJobOfTheLogThatCannotBeStartedIsGoneBackFrom) {
  RunProgress progress;
  progress.job.emplace().set_name("second");
  const JobConfig asked = *progress.job;
  const absl::Status no_card = absl::FailedPreconditionError("no card");
  EXPECT_EQ(GoBack(no_card, asked, &progress).status(), no_card) << "there is none before";
  progress.job_before.emplace().set_name("first");
  JobConfig other;
  other.set_name("third");
  EXPECT_EQ(GoBack(no_card, other, &progress).status(), no_card)
      << "somebody has just asked for it";
  const absl::Status busy = absl::UnavailableError("no process can be started");
  EXPECT_EQ(GoBack(busy, asked, &progress).status(), busy) << "it may go the next time";
  const auto told = GoBack(no_card, asked, &progress);
  ASSERT_TRUE(told.ok());
  EXPECT_EQ(*told,
            "the change of the job is dropped: name from \"first\" to \"second\"\n  no card");
  EXPECT_EQ(progress.job->name(), "first");
}

TEST_F(RunProgressTest, ACauseThatReadsLikeAWishIsALoss) {
  Append("generation { generation: 1 began: BEGAN_START }");
  Append("generation { generation: 2 began: BEGAN_RESTART ended { text: 'scale' } }");
  Append("generation { generation: 3 began: BEGAN_SCALED ended { text: 'killed' } }");
  const RunProgress progress = Read();
  EXPECT_EQ(progress.began, BEGAN_SCALED);
  ASSERT_EQ(progress.restarts.size(), 2u) << "no announcement by its text";
  EXPECT_EQ(progress.restarts[0].began(), BEGAN_RESTART);
  EXPECT_EQ(progress.restarts[0].cause(), "scale");
  EXPECT_EQ(progress.restarts[1].began(), BEGAN_SCALED);
  EXPECT_EQ(progress.restarts[1].cause(), "scaled");
}

}  // namespace
}  // namespace satrap
