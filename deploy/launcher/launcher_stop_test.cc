// Runs that are stopped, by signals and by `satrap stop`.

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <string>

#include "deploy/launcher/launcher_test_fixture.h"
#include "gmock/gmock.h"

namespace satrap {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using Clock = std::chrono::steady_clock;

// The coordinator's reason after a last cut.
const std::string kStopped = "stop_reason: 'stopped on request after a cut; nothing is lost'";

TEST_F(LauncherTest, TheFirstSignalLetsATrainingTakeALastCut) {
  AppendGeneration(1);
  ScriptCoordinator("state: RUNNING generation: 1");
  SetStatus("state: RUNNING generation: 1 train { step: 7 }", "on_wish");
  for (const char* role : {"embedding_ps", "embedding_worker", "data_loader", "nn_worker"}) {
    SetProgram(role, "trap 'exit 0' TERM\nwhile true; do sleep 0.1; done");
  }
  int asked = 0;
  int asked_before_end = 0;
  const RunEnd end =
      Run([] {}, {},
          [&](const StatusAnswer& status) {
            if (++asked == 1) kill(getpid(), SIGINT);
            if (status.train().step() == 7 && asked_before_end++ == 1) {
              CommitCut(1, 1, 7);
              SetStatus("state: STOPPED generation: 1 train { step: 7 } " + kStopped);
              for (const Role role : {EMBEDDING_PS, EMBEDDING_WORKER, DATA_LOADER, NN_WORKER}) {
                launcher_->Signal(role, 0, SIGTERM).IgnoreError();
              }
              launcher_->Signal(NN_WORKER, 1, SIGTERM).IgnoreError();
            }
            return true;
          });
  EXPECT_THAT(ContentOf(dir_ + "/run/wish.textproto"), HasSubstr("kind: STOP"));
  EXPECT_EQ(end.kind, RunEnd::INTERRUPTED);
  EXPECT_EQ(end.message, "Interrupt");
  EXPECT_THAT(end.outlook, AllOf(HasSubstr("no work is lost; `satrap resume "),
                                 HasSubstr("` goes on from step 7 (cut_0001_000001)")));
  ASSERT_THAT(messages_, SizeIs(1));
  EXPECT_THAT(messages_[0],
              HasSubstr("Interrupt: the run takes a last cut and stops, within 25 s"));
  ExpectNobodyIsLeft();
}

TEST_F(LauncherTest, ALastCutThatTakesTooLongIsGivenUpAndTheLossIsTold) {
  job_.set_stop_seconds(0.5);
  AppendGeneration(1);
  CommitCut(1, 1, 7);
  ScriptCoordinator("state: RUNNING generation: 1 train { step: 9 }");
  SetStatus("state: RUNNING generation: 1 train { step: 12 }", "on_wish");
  int asked = 0;
  const RunEnd end = Run([] {}, {},
                         [&](const StatusAnswer&) {
                           if (++asked == 1) kill(getpid(), SIGTERM);
                           return true;
                         });
  EXPECT_EQ(end.kind, RunEnd::INTERRUPTED);
  EXPECT_THAT(end.outlook, HasSubstr("goes on from step 7 (cut_0001_000001); about 5 steps after "
                                     "it are lost"));
  EXPECT_THAT(end.warnings,
              ElementsAre("the run did not stop with a last cut within 0.5 s (stop_seconds)"));
  ExpectNobodyIsLeft();
}

TEST_F(LauncherTest, TheSecondSignalEndsTheRunAtOnce) {
  AppendGeneration(1);
  ScriptCoordinator("state: RUNNING generation: 1");
  SetStatus("state: RUNNING generation: 1 train { step: 7 }", "on_wish");
  int asked = 0;
  const auto start = Clock::now();
  const RunEnd end = Run([] {}, {},
                         [&](const StatusAnswer& status) {
                           if (++asked == 1 || status.train().step() == 7) kill(getpid(), SIGINT);
                           return true;
                         });
  EXPECT_EQ(end.kind, RunEnd::INTERRUPTED);
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(10)) << "long before stop_seconds";
  ExpectNobodyIsLeft();
}

// As timeout(1) does: to the process, and to its group.
TEST_F(LauncherTest, ASigtermThatIsSentTwiceAtOnceIsOne) {
  AppendGeneration(1);
  ScriptCoordinator("state: RUNNING generation: 1");
  SetStatus("state: RUNNING generation: 1 train { step: 7 }", "on_wish");
  int asked = 0;
  int after_wish = 0;
  on_message_ = [] { kill(getpid(), SIGTERM); };
  const RunEnd end = Run([] {}, {},
                         [&](const StatusAnswer& status) {
                           if (++asked == 1) kill(getpid(), SIGTERM);
                           if (status.train().step() == 7) ++after_wish;
                           if (after_wish == 8) kill(getpid(), SIGTERM);  // seconds later
                           return true;
                         });
  EXPECT_EQ(end.kind, RunEnd::INTERRUPTED);
  EXPECT_GE(after_wish, 8) << "the repeat was no second signal";
  EXPECT_THAT(messages_, SizeIs(1));
}

TEST_F(LauncherTest, ADeathDuringTheLastCutEndsTheRun) {
  job_.set_max_restarts(5);
  AppendGeneration(1);
  ScriptCoordinator("state: RUNNING generation: 1");
  SetStatus("state: RUNNING generation: 1 train { step: 7 }", "on_wish");
  int asked = 0;
  const RunEnd end = Run([] {}, {},
                         [&](const StatusAnswer& status) {
                           if (++asked == 1) kill(getpid(), SIGINT);
                           if (status.train().step() == 7)
                             launcher_->Signal(EMBEDDING_PS, 0, SIGKILL).IgnoreError();
                           return true;
                         });
  EXPECT_EQ(end.kind, RunEnd::INTERRUPTED);
  EXPECT_THAT(messages_, SizeIs(1)) << "that of the signal";
  EXPECT_THAT(end.warnings,
              ElementsAre(HasSubstr("there is no last cut: embedding_ps 0 was killed")));
  EXPECT_THAT(end.outlook,
              HasSubstr("goes on from the beginning; about 7 steps after it are lost"));
  ExpectNobodyIsLeft();
}

TEST_F(LauncherTest, AStopThatAnotherCommandWishedEndsTheRunWell) {
  AppendGeneration(1);
  CommitCut(1, 1, 7);
  for (const char* role : {"embedding_ps", "embedding_worker", "data_loader", "nn_worker"}) {
    SetProgram(role, "sleep 1; exit 0");
  }
  ScriptCoordinator("state: STOPPED generation: 1 train { step: 7 } " + kStopped);
  const RunEnd end = Run([] {});
  EXPECT_EQ(end.kind, RunEnd::STOPPED);
  EXPECT_THAT(end.outlook, HasSubstr("no work is lost; `satrap resume "));
  EXPECT_THAT(end.warnings, SizeIs(0));
  ExpectNobodyIsLeft();
}

TEST_F(LauncherTest, AWishThatIsRefusedIsMadeAgainUntilItIsTaken) {
  AppendGeneration(1);
  ScriptCoordinator("state: RUNNING generation: 1");
  int asked = 0;
  const RunEnd end =
      Run([] {}, {},
          [&](const StatusAnswer& status) {
            if (++asked == 1) kill(getpid(), SIGINT);
            if (asked == 4) SetStatus("state: RUNNING generation: 1 train { step: 7 }", "on_wish");
            if (status.train().step() == 7) {
              CommitCut(1, 1, 7);
              SetStatus("state: STOPPED generation: 1 " + kStopped);
              for (const Role role : {EMBEDDING_PS, EMBEDDING_WORKER, DATA_LOADER, NN_WORKER}) {
                launcher_->Signal(role, 0, SIGKILL).IgnoreError();
              }
              launcher_->Signal(NN_WORKER, 1, SIGKILL).IgnoreError();
            }
            return true;
          });
  EXPECT_EQ(end.kind, RunEnd::INTERRUPTED);
  EXPECT_THAT(end.outlook, HasSubstr("no work is lost; `satrap resume "));
  EXPECT_THAT(messages_,
              ElementsAre(HasSubstr("\n  it waits: coordinator: the run takes no cut any more"),
                          "the run takes its last cut now"));
  EXPECT_THAT(end.warnings, SizeIs(0));
}

TEST_F(LauncherTest, ACoordinatorThatDoesNotAnswerAtOnceIsWaitedFor) {
  AppendGeneration(1);
  ScriptCoordinator("state: RUNNING generation: 1");
  SetStatus("state: RUNNING generation: 1 train { step: 7 }", "on_wish");
  int asked = 0;
  const RunEnd end = Run([] {}, {},
                         [&](const StatusAnswer& status) {
                           if (++asked == 1) {
                             std::filesystem::remove(dir_ + "/run/status.textproto");
                             kill(getpid(), SIGINT);
                           }
                           if (asked == 5) SetStatus("state: RUNNING generation: 1");
                           return status.train().step() != 7;
                         });
  EXPECT_EQ(end.kind, RunEnd::DISMISSED) << "the wish was taken in the end";
  EXPECT_THAT(messages_, ElementsAre(HasSubstr("\n  it waits: the coordinator does not answer"),
                                     "the run takes its last cut now"));
}

TEST_F(LauncherTest, AStopDuringAChangeOfSizeWaitsForItsCut) {
  AppendGeneration(1);
  ScriptCoordinator("state: RUNNING generation: 1 train { step: 9 }");
  int asked = 0;
  const RunEnd end = Run([] {}, {},
                         [&](const StatusAnswer&) {
                           if (++asked == 1) kill(getpid(), SIGINT);
                           if (asked == 4) {
                             CommitCut(1, 1, 9);
                             AppendToLog(
                                 "generation { generation: 2 cut: 'cut_0001_000001' cause: 'scale' "
                                 "job { name: 'scripts' } }");
                             SetStatus("state: RESTARTING generation: 1 train { step: 9 }");
                           }
                           return true;
                         });
  EXPECT_EQ(end.kind, RunEnd::INTERRUPTED);
  EXPECT_THAT(end.outlook, AllOf(HasSubstr("no work is lost; `satrap resume "),
                                 HasSubstr("goes on from step 9 (cut_0001_000001)")));
  EXPECT_THAT(end.warnings, SizeIs(0));
  EXPECT_THAT(messages_, SizeIs(1)) << "that of the signal: the new size is not started";
  ExpectNobodyIsLeft();
}

TEST_F(LauncherTest, AStopThatNobodyTakesIsGivenUpAndTheLossIsNotClaimedToBeKnown) {
  job_.set_stop_seconds(0.5);
  AppendGeneration(1);
  CommitCut(1, 1, 9);
  ScriptCoordinator("state: RUNNING generation: 1 train { step: 9 }");
  int asked = 0;
  const RunEnd end = Run([] {}, {},
                         [&](const StatusAnswer&) {
                           if (++asked == 1) kill(getpid(), SIGINT);
                           return true;
                         });
  EXPECT_EQ(end.kind, RunEnd::INTERRUPTED);
  EXPECT_THAT(end.warnings, ElementsAre("no last cut was asked for within 0.5 s (stop_seconds): "
                                        "coordinator: the run takes no cut any more"));
  EXPECT_THAT(end.outlook, AllOf(HasSubstr("(cut_0001_000001); at most the work after it is lost"),
                                 Not(HasSubstr("no work is lost"))));
}

TEST_F(LauncherTest, AGenerationThatHasNotBegunIsStoppedAtOnce) {
  AppendGeneration(1);
  CommitCut(1, 1, 9);
  ScriptCoordinator("state: STARTING generation: 1");
  SetStatus("state: STOPPED generation: 1 " + kStopped, "on_wish");
  int asked = 0;
  const auto start = Clock::now();
  const RunEnd end = Run([] {}, {},
                         [&](const StatusAnswer&) {
                           if (++asked == 1) kill(getpid(), SIGINT);
                           return true;
                         });
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(10)) << "roles that still load are killed";
  EXPECT_EQ(end.kind, RunEnd::INTERRUPTED);
  EXPECT_THAT(end.outlook, HasSubstr("no work is lost; `satrap resume "));
  EXPECT_THAT(end.warnings, SizeIs(0));
  ExpectNobodyIsLeft();
}

TEST_F(LauncherTest, AStopWithoutALastCutTellsWhyAndWhatIsLost) {
  AppendGeneration(1);
  CommitCut(1, 1, 7);
  ScriptCoordinator("state: STOPPED generation: 1 train { step: 12 } stop_reason: 'too late'");
  const RunEnd end = Run([] {});
  EXPECT_EQ(end.kind, RunEnd::STOPPED);
  EXPECT_THAT(end.warnings, ElementsAre("too late"));
  EXPECT_THAT(end.outlook, HasSubstr("(cut_0001_000001); about 5 steps after it are lost"));
}

TEST_F(LauncherTest, ADamagedNewestCutIsNotToldAsThePlaceToGoOnFrom) {
  AppendGeneration(1);
  CommitCut(1, 1, 7);
  ScriptCoordinator("state: RUNNING generation: 1");
  const RunEnd end =
      Run([] {}, {},
          [&](const StatusAnswer&) {
            std::filesystem::remove(dir_ + "/run/checkpoints/cut_0001_000001/manifest");
            launcher_->Signal(EMBEDDING_PS, 0, SIGKILL).IgnoreError();
            return true;
          });
  EXPECT_EQ(end.kind, RunEnd::FAILED);
  EXPECT_THAT(end.outlook, AllOf(HasSubstr("the newest cut, cut_0001_000001, is damaged: "),
                                 HasSubstr(" --from CUT`"), Not(HasSubstr("goes on from"))));
}

// The quick look at the cut sees nothing, but a role that loaded it has said what to do.
TEST_F(LauncherTest, ARunThatFailedOfItsCutIsNotSentIntoTheSameFailure) {
  AppendGeneration(1);
  CommitCut(1, 1, 7);
  ScriptCoordinator(
      "state: FAILED generation: 1 stop_reason: 'embedding_ps 0: a.rows is damaged; go on from "
      "another cut with `satrap resume RUN --from CUT`'");
  const RunEnd end = Run([] {});
  EXPECT_EQ(end.kind, RunEnd::FAILED);
  EXPECT_THAT(end.message, HasSubstr("a.rows is damaged"));
  EXPECT_EQ(end.outlook, "");
}

}  // namespace
}  // namespace satrap
