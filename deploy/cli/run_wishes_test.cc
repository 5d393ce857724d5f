#include "deploy/cli/run_wishes.h"

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/config/job_config.h"
#include "common/config/testing/validation_check.h"
#include "deploy/cli/testing/fake_run.h"
#include "gmock/gmock.h"
#include "nn_worker/trainer/device_rehearsal.h"
#include "nn_worker/trainer/memory_plan/device_plan.h"

namespace satrap {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

constexpr char kSaved[] =
    "state: STOPPED generation: 1 ending { loss: NOTHING text: 'stopped on request after a cut' }";

class RunWishesTest : public FakeRunTest {
 protected:
  void SetUp() override {
    FakeRunTest::SetUp();
    ResolveJob(&job_);
  }
  void AppendGeneration(int number, const JobConfig& job, const std::string& cut = "") {
    Append(absl::StrCat("generation { generation: ", number, " cut: '", cut, "' job { ",
                        job.ShortDebugString(), " } }"));
  }
  // Writes the log and a cut of a training run, at step 1,200.
  void MakeTraining() {
    AppendGeneration(1, job_);
    WriteCut(dir_, 1, 1, 1200);
    Append("cut { generation: 1 cut: 'cut_0001_000001' step: 1200 }");
  }
  // Accepts each wish, and from then on answers with these statuses.
  void TakeWishes(std::vector<std::string> statuses) {
    on_wish_ = [this, statuses = std::move(statuses)](const WishRequest&) {
      Script(statuses);
      return 1;
    };
  }
  std::string GoesOn() const {
    return "`satrap resume " + dir_ + "` continues from step 1,200 (cut_0001_000001)";
  }

  JobConfig job_ = SmallJob();
};

TEST_F(RunWishesTest, AStoppedRunSaysHowToGoOn) {
  MakeTraining();
  TakeWishes({"state: RUNNING generation: 1", kSaved});
  const auto end = StopRun(dir_);
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_EQ(end->text, "run " + dir_ + " has stopped; no work is lost; " + GoesOn());
  EXPECT_EQ(end->warning, "");
  EXPECT_EQ(RunnerOf(dir_), "") << "it can be resumed";
  ASSERT_THAT(Wishes(), SizeIs(1));
  EXPECT_EQ(Wishes()[0].kind(), WishRequest::STOP);
}

TEST_F(RunWishesTest, AStopWithoutALastCutSaysWhy) {
  MakeTraining();
  TakeWishes({"state: STOPPED generation: 1 ending { text: 'no last cut within 25 s' }"});
  const auto end = StopRun(dir_);
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_EQ(end->warning, "no last cut within 25 s");
  EXPECT_EQ(end->text, "run " + dir_ + " has stopped; " + GoesOn());
}

TEST_F(RunWishesTest, WordsInTheTextOfAStopDoNotSayThatNothingIsLost) {
  MakeTraining();
  TakeWishes(
      {"state: STOPPED generation: 1 ending { text: 'whether nothing is lost is unknown' }"});
  const auto end = StopRun(dir_);
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_EQ(end->warning, "whether nothing is lost is unknown");
  EXPECT_EQ(end->text, "run " + dir_ + " has stopped; " + GoesOn());
}

TEST_F(RunWishesTest, ALauncherThatDoesNotEndIsNamed) {
  MakeTraining();
  TakeWishes({kSaved});
  is_released_ = false;
  const absl::Status late = StopRun(dir_, /*release_ms=*/50).status();
  EXPECT_EQ(late.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(late.message(), AllOf(HasSubstr(dir_ + " has stopped, but process "),
                                    HasSubstr(" has not ended its processes within 0.05 s")));
}

TEST_F(RunWishesTest, NothingIsWishedOfARunThatDoesNotRun) {
  MakeTraining();
  Release();
  for (const absl::Status& refused :
       {StopRun(dir_).status(), TakeCut(dir_).status(), ScaleRun(dir_, {"epochs=2"}).status()}) {
    EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(refused.message(), HasSubstr("nothing runs in " + dir_));
  }
}

TEST_F(RunWishesTest, ARunThatEndsInsteadOfStoppingIsNotSaidToHaveStopped) {
  MakeTraining();
  TakeWishes({kGone});
  const absl::Status gone = StopRun(dir_).status();
  EXPECT_EQ(gone.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(gone.message(),
              AllOf(HasSubstr(" ended without reporting that it had stopped; "),
                    HasSubstr(GoesOn()), HasSubstr("; at most the work after it is lost")));
}

TEST_F(RunWishesTest, ARunThatLeftWithALastCutHasStoppedThoughItsLastWordIsMissed) {
  MakeTraining();
  on_wish_ = [this](const WishRequest&) {
    WriteCut(dir_, 1, 2, 1300);
    Append("cut { generation: 1 cut: 'cut_0001_000002' step: 1300 leave: true }");
    Script({kGone});
    return 1;
  };
  const auto end = StopRun(dir_);
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_EQ(end->text, "run " + dir_ + " has stopped; no work is lost; `satrap resume " + dir_ +
                           "` continues from step 1,300 (cut_0001_000002)");
  EXPECT_EQ(end->warning, "");
}

TEST_F(RunWishesTest, ALastCutOfAnEarlierGenerationSavesNothingOfThisOne) {
  AppendGeneration(1, job_);
  WriteCut(dir_, 1, 1, 1200);
  Append("cut { generation: 1 cut: 'cut_0001_000001' step: 1200 leave: true }");
  AppendGeneration(2, job_, "cut_0001_000001");
  Script({"state: RUNNING generation: 2"});
  TakeWishes({kGone});
  const absl::Status gone = StopRun(dir_).status();
  EXPECT_EQ(gone.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(gone.message(), HasSubstr("(cut_0001_000001); at most the work after it is lost"));
}

TEST_F(RunWishesTest, ARunThatEndsAfterTheCutAtTheEndOfTrainingLosesNothing) {
  MakeTraining();
  on_wish_ = [this](const WishRequest&) {
    WriteCut(dir_, 1, 2, 1300);
    Append("cut { generation: 1 cut: 'cut_0001_000002' step: 1300 last: true }");
    Script({kGone});
    return 1;
  };
  const absl::Status gone = StopRun(dir_).status();
  EXPECT_EQ(gone.code(), absl::StatusCode::kAborted) << "it may have failed in its test pass";
  EXPECT_THAT(gone.message(), HasSubstr("(cut_0001_000002); no work is lost"));
}

TEST_F(RunWishesTest, ARunThatFinishesInsteadOfStoppingHasFinished) {
  MakeTraining();
  on_wish_ = [this](const WishRequest&) {
    Append("end { result { steps: 1300 } }");
    Script({kGone});
    return 1;
  };
  const absl::Status finished = StopRun(dir_).status();
  EXPECT_EQ(finished.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(finished.message(), HasSubstr(" has finished; there was nothing to stop"));
}

TEST_F(RunWishesTest, AStoppedScoringIsRepeatedNotResumed) {
  job_.set_action(JobConfig::EVALUATE);
  AppendGeneration(1, job_);
  TakeWishes({"state: STOPPED generation: 1 ending { text: 'stopped on request' }"});
  const auto end = StopRun(dir_);
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_THAT(end->text, AllOf(HasSubstr("it was not a training run, so repeat its command"),
                               Not(HasSubstr("satrap resume"))));
  EXPECT_EQ(end->warning, "") << "it has no work to lose";
}

TEST_F(RunWishesTest, ACutIsShownWithItsFolder) {
  MakeTraining();
  TakeWishes(
      {"state: RUNNING generation: 1 fulfilled_wish: 1 last_cut { cut: 'cut_0001_000002' "
       "step: 1300 bytes: 1500 seconds: 0.5 }"});
  const auto end = TakeCut(dir_);
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_EQ(end->text, dir_ + "/checkpoints/cut_0001_000002: step 1,300, 1.5 KB, written in 0.5 s");
}

TEST_F(RunWishesTest, AnotherSizeIsWaitedForUntilItRuns) {
  MakeTraining();
  on_wish_ = [this](const WishRequest& wish) {
    AppendGeneration(2, wish.job());
    Script({"state: RESTARTING generation: 1", "state: STARTING generation: 2",
            "state: RUNNING generation: 2"});
    return 1;
  };
  const auto end = ScaleRun(dir_, {"embedding_ps.replicas=3"});
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_EQ(end->text,
            "generation 2 runs: 1 data loaders, 1 embedding workers, 3 embedding PSs, 1 NN "
            "workers");
  ASSERT_THAT(Wishes(), SizeIs(1));
  EXPECT_EQ(Wishes()[0].kind(), WishRequest::SCALE);
}

TEST_F(RunWishesTest, ALossBeforeTheChangeOfSizeDoesNotEndTheWish) {
  MakeTraining();
  on_wish_ = [this](const WishRequest&) {
    AppendGeneration(2, job_);
    Script({"state: RUNNING generation: 2"});
    on_wish_ = [this](const WishRequest& again) {
      AppendGeneration(3, again.job());
      Script({"state: RUNNING generation: 3"});
      return 1;
    };
    return 1;
  };
  const auto end = ScaleRun(dir_, {"data_loader.replicas=2"});
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_THAT(end->text, HasSubstr("generation 3 runs: 2 data loaders"));
  EXPECT_THAT(Wishes(), SizeIs(2));
}

TEST_F(RunWishesTest, ASizeThatCouldNotBeginIsNamedWithItsCause) {
  MakeTraining();
  Append("running { generation: 1 }");
  on_wish_ = [this](const WishRequest& wish) {
    AppendGeneration(2, wish.job());
    Append(
        "dropped { generation: 2 change: 'embedding_ps.replicas from 1 to 3' ended { text: "
        "'nn_worker 0: there is no card' } }");
    AppendGeneration(3, job_);
    Script({"state: STARTING generation: 3"});
    return 1;
  };
  const absl::Status dropped = ScaleRun(dir_, {"embedding_ps.replicas=3"}).status();
  EXPECT_EQ(dropped.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(dropped.message(), "run " + dir_ +
                                   " continues as before, because the change could not begin: "
                                   "embedding_ps.replicas from 1 to 3\n  nn_worker 0: there is no "
                                   "card");
  EXPECT_THAT(Wishes(), SizeIs(1)) << "it is not asked for again";
}

TEST_F(RunWishesTest, AStopWhileASizeIsDroppedIsToldToWhoScalesAndToWhoStops) {
  MakeTraining();
  Append("running { generation: 1 }");
  on_wish_ = [this](const WishRequest& wish) {
    AppendGeneration(2, wish.job());
    Append(
        "dropped { generation: 2 change: 'embedding_ps.replicas from 1 to 3' ended { text: "
        "'nn_worker 0: there is no card' } }");
    Script({"state: STOPPED generation: 2 ending { loss: NOTHING }"});
    return 1;
  };
  is_released_ = false;
  const absl::Status dropped = ScaleRun(dir_, {"embedding_ps.replicas=3"}).status();
  EXPECT_EQ(dropped.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(
      dropped.message(),
      "run " + dir_ +
          " is not running any more; `satrap resume` continues it with the earlier job, because "
          "the change could not begin: embedding_ps.replicas from 1 to 3\n  nn_worker 0: there is "
          "no card");
  is_released_ = true;
  const auto end = StopRun(dir_);
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_THAT(end->text,
              AllOf(HasSubstr("no work is lost"),
                    HasSubstr("\nthe change of the job is dropped: embedding_ps.replicas "
                              "from 1 to 3\n  nn_worker 0: there is no card")));
}

TEST_F(RunWishesTest, WhoScalesARunThatHasEndedMeanwhileHearsOfTheDrop) {
  MakeTraining();
  Append("running { generation: 1 }");
  on_wish_ = [this](const WishRequest& wish) {
    AppendGeneration(2, wish.job());
    Append("dropped { generation: 2 change: 'x' ended { text: 'there is no card' } }");
    Script({kGone});
    return 1;
  };
  const absl::Status dropped = ScaleRun(dir_, {"embedding_ps.replicas=3"}).status();
  EXPECT_EQ(dropped.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(dropped.message(), HasSubstr("the change could not begin: x\n  there is no card"));
}

TEST_F(RunWishesTest, ARunThatHasTheSizeIsLeftAlone) {
  MakeTraining();
  const auto end = ScaleRun(dir_, {"embedding_ps.replicas=1"});
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_THAT(end->text, HasSubstr("has these values already: nothing changes"));
  EXPECT_THAT(Wishes(), SizeIs(0));
}

TEST_F(RunWishesTest, WhatMustNotChangeIsNamedAndNotWished) {
  MakeTraining();
  const absl::Status refused = ScaleRun(dir_, {"seed=2", "global_batch_size=64"}).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(refused.message(),
              AllOf(HasSubstr("run " + dir_ + " cannot be scaled:\n  "),
                    HasSubstr("  seed: cannot change"), HasSubstr("  global_batch_size: cannot")));
  EXPECT_THAT(Wishes(), SizeIs(0));
}

// A single NN worker has parts twice as large as each of two workers.
TEST_F(RunWishesTest, ASizeThatNeedsMoreDeviceMemoryThanTheLimitIsNotWished) {
  job_.mutable_nn_worker()->set_device(NnWorkerConfig::HOST);
  job_.mutable_nn_worker()->set_replicas(2);
  const int64_t need = PlanDevice(job_)->total();
  job_.mutable_nn_worker()->set_device_memory_bytes(need);
  MakeTraining();
  const absl::Status refused = ScaleRun(dir_, {"nn_worker.replicas=1"}).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(refused.message(),
              AllOf(HasSubstr(absl::StrCat("run ", dir_,
                                           " cannot be scaled: nn_worker.device_memory_bytes is ",
                                           need, ", but each NN worker needs ")),
                    HasSubstr("raise it, or use a smaller global_batch_size")));
  EXPECT_THAT(Wishes(), SizeIs(0));
}

TEST_F(RunWishesTest, ARefusedChangeOfSizeIsTold) {
  MakeTraining();
  on_wish_ = [](const WishRequest&) {
    return absl::FailedPreconditionError("the run is being scaled already");
  };
  EXPECT_THAT(ScaleRun(dir_, {"epochs=2"}).status().message(),
              HasSubstr("the run is being scaled already"));
}

TEST_F(RunWishesTest, ARunThatHasNoJobYetIsNotScaled) {
  EXPECT_EQ(ScaleRun(dir_, {"epochs=2"}).status(),
            absl::UnavailableError("the run is just starting"));
}

class ScaleInPodTest : public RunWishesTest {
 protected:
  void SetUp() override {
    RunWishesTest::SetUp();
    coordinator_ = absl::StrCat("unix:", std::filesystem::read_symlink(dir_ + "/sockets").string(),
                                "/coordinator_0");
    MakeTraining();
  }
  absl::StatusOr<ScalePlan> Plan(const std::vector<std::string>& sets) const {
    return PlanScaleInPod(dir_, /*submission=*/1, coordinator_, sets);
  }
  std::string coordinator_;
};

TEST_F(ScaleInPodTest, APlanSaysHowManyPodsAreNeededAndWhichOfThemWait) {
  Script(
      {"state: RUNNING generation: 1 waiting { member { role: EMBEDDING_PS index: 0 } } "
       "waiting { member { role: EMBEDDING_PS index: 2 } } "
       "waiting { member { role: NN_WORKER index: 1 } }"});
  const auto plan = Plan({"embedding_ps.replicas=3", "data_loader.replicas=2"});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_FALSE(plan->changes_nothing());
  EXPECT_GT(plan->start_seconds(), 0);
  ASSERT_EQ(plan->parts_size(), 4);
  EXPECT_EQ(plan->parts(0).ShortDebugString(), "role: DATA_LOADER now: 1 wanted: 2");
  EXPECT_EQ(plan->parts(1).ShortDebugString(), "role: EMBEDDING_WORKER now: 1 wanted: 1");
  EXPECT_EQ(plan->parts(2).ShortDebugString(), "role: EMBEDDING_PS now: 1 wanted: 3 waiting: 2");
  EXPECT_EQ(plan->parts(3).ShortDebugString(), "role: NN_WORKER now: 1 wanted: 1 waiting: 1");
  EXPECT_TRUE(Plan({"embedding_ps.replicas=1"})->changes_nothing());
  EXPECT_THAT(Wishes(), SizeIs(0));
}

TEST_F(ScaleInPodTest, APlanNamesWhatMustNotChangeAndWhoHasEnded) {
  EXPECT_THAT(Plan({"seed=2"}).status().message(), HasSubstr("seed: cannot change"));
  Script({"state: FINISHED generation: 1"});
  EXPECT_EQ(Plan({"embedding_ps.replicas=3"}).status(),
            absl::FailedPreconditionError("the run has ended: FINISHED"));
}

TEST_F(ScaleInPodTest, ARunInPodsIsScaledByItsCoordinatorsAddress) {
  on_wish_ = [this](const WishRequest& wish) {
    AppendGeneration(2, wish.job());
    Script({"state: RUNNING generation: 2"});
    return 1;
  };
  const auto end = ScaleRunInPod(dir_, /*submission=*/1, coordinator_, {"embedding_ps.replicas=3"});
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_THAT(end->text, HasSubstr("generation 2 runs: "));
}

}  // namespace
}  // namespace satrap
