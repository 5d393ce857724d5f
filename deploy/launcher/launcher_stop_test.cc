// Tests runs that are stopped by signals and by `satrap stop`.

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <utility>

#include "common/role/coordinator_client.h"
#include "common/rpc/grpc_channel.h"
#include "deploy/launcher/testing/launcher_fixture.h"
#include "deploy/launcher/testing/logged_run.h"
#include "gmock/gmock.h"

namespace satrap {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using Clock = std::chrono::steady_clock;

// The ending of a generation that stopped after a last cut.
const std::string kStopped = "ending { why: ASKED loss: NOTHING text: 'stopped after a cut' }";
// What the launcher says about the dropped change of size in StopWhileASizeIsDropped.
constexpr char kDropped[] =
    "the change of the job is dropped: embedding_ps.replicas from 1 to 2\n  there is no card";

class LauncherStopTest : public LauncherTest {
 protected:
  // Sets up a training in its first generation, whose coordinator answers Status with `status` and
  // refuses wishes.
  void ScriptTraining(const std::string& status = "state: RUNNING generation: 1") {
    AppendGeneration(1);
    ScriptCoordinator(status);
  }
  // Makes the coordinator accept the next wish, and report step 7 from then on.
  void TakeNextWish() { SetStatus("state: RUNNING generation: 1 train { step: 7 }", "on_wish"); }
  // Runs until the end, and sends `signal` when the first status comes. `watch` receives each
  // status.
  RunEnd RunAndSignal(
      int signal, const std::function<void(const StatusAnswer&)>& watch = [](const auto&) {}) {
    return Run([] {}, {},
               [&](const StatusAnswer& status) {
                 if (++asked_ == 1) kill(getpid(), signal);
                 watch(status);
                 return true;
               });
  }
  // Makes the run commit its last cut and stop, and sends `signal` to all processes except the
  // coordinator, to end them.
  void StopRun(int signal) {
    CommitCut(1, 1, 7);
    SetStatus("state: STOPPED generation: 1 train { step: 7 } " + kStopped);
    EndRoles(signal);
  }

  // A signal stops the run while its second generation drops a change of size. `ending` is what the
  // coordinator then reports as its ending.
  RunEnd StopWhileASizeIsDropped(const std::string& ending) {
    AppendGeneration(1);
    CommitCut(1, 1, 7);
    JobConfig wanted = job_;
    wanted.mutable_embedding_ps()->set_replicas(2);
    AppendToLog("generation { generation: 2 began: BEGAN_SCALED cut: 'cut_0001_000001' job { " +
                wanted.ShortDebugString() + " } }");
    ScriptCoordinator("state: STARTING generation: 2");
    RunEnd end = RunAndSignal(SIGINT, [&](const StatusAnswer& status) {
      if (status.state() != STARTING) return;
      AppendToLog(
          "dropped { generation: 2 change: 'embedding_ps.replicas from 1 to 2' ended { text: "
          "'there is no card' } }");
      SetStatus("state: STOPPED generation: 2 " + ending);
    });
    EXPECT_EQ(end.kind, RunEnd::INTERRUPTED);
    ExpectNobodyIsLeft();
    return end;
  }

  int asked_ = 0;  // how many statuses RunAndSignal has seen
};

TEST_F(LauncherStopTest, TheFirstSignalLetsATrainingTakeALastCut) {
  ScriptTraining();
  TakeNextWish();
  for (const char* role : {"embedding_ps", "embedding_worker", "data_loader", "nn_worker"}) {
    SetProgram(role, "trap 'exit 0' TERM\nwhile true; do sleep 0.1; done");
  }
  int asked_before_end = 0;
  const RunEnd end = RunAndSignal(SIGINT, [&](const StatusAnswer& status) {
    if (status.train().step() == 7 && asked_before_end++ == 1) StopRun(SIGTERM);
  });
  EXPECT_THAT(ContentOf(dir_ + "/run/wish.textproto"), HasSubstr("kind: STOP"));
  EXPECT_EQ(end.kind, RunEnd::INTERRUPTED);
  EXPECT_EQ(end.message, "Interrupt");
  EXPECT_THAT(end.outlook, AllOf(HasSubstr("no work is lost; `satrap resume "),
                                 HasSubstr("` continues from step 7 (cut_0001_000001)")));
  ASSERT_THAT(messages_, SizeIs(1));
  EXPECT_THAT(messages_[0],
              HasSubstr("Interrupt: the run takes a last cut and stops, within 25 s"));
  ExpectNobodyIsLeft();
}

TEST_F(LauncherStopTest, AWishToStopIsTakenInThePauseBetweenTwoGenerations) {
  job_.set_max_restarts(9);
  AppendGeneration(1);
  CommitCut(1, 4, 1200);
  SetProgram("data_loader", "exit 3");
  WishRequest wish;
  wish.set_kind(WishRequest::STOP);
  absl::StatusOr<uint64_t> wished = absl::UnknownError("");
  absl::StatusOr<StatusAnswer> told = absl::UnknownError("");
  std::thread command;
  // Before the generation after the third restart there is a pause of two seconds, in which a
  // command asks for a stop.
  on_message_ = [&] {
    if (messages_.size() != 3) return;
    command = std::thread([&, address = folder_->SocketAddress("coordinator_0")] {
      const auto channel = rpc::GrpcChannel::Create(address, rpc::EndpointOptions());
      CoordinatorClient client(channel->get(), Envelope(), 10000);
      wished = client.Wish(wish);
      told = client.Status();
    });
  };
  const RunEnd end = Run([] {});
  command.join();
  EXPECT_TRUE(wished.ok()) << wished.status();
  ASSERT_TRUE(told.ok()) << told.status();
  EXPECT_EQ(told->state(), STOPPED);
  EXPECT_EQ(told->ending().why(), Ending::ASKED);
  EXPECT_EQ(end.kind, RunEnd::STOPPED) << end.message;
  EXPECT_THAT(messages_, SizeIs(3)) << "nothing was started again";
  EXPECT_THAT(end.outlook, HasSubstr("` continues from step 1,200 (cut_0001_000004)"));
  ExpectNobodyIsLeft();
}

TEST_F(LauncherStopTest, AStopWhileASizeIsDroppedSaysWhichAndTheRunStops) {
  const RunEnd end = StopWhileASizeIsDropped(kStopped);
  EXPECT_THAT(end.warnings, ElementsAre(kDropped));
  EXPECT_THAT(end.outlook, HasSubstr("no work is lost"));
}

TEST_F(LauncherStopTest, SoDoesOneThatLosesWorkAndItSaysWhatIsLost) {
  const RunEnd end = StopWhileASizeIsDropped("ending { why: ASKED text: 'some work is lost' }");
  EXPECT_THAT(end.warnings, ElementsAre(kDropped, "some work is lost"));
}

TEST_F(LauncherStopTest, ALastCutThatTakesTooLongIsGivenUpAndTheLossIsTold) {
  job_.set_stop_seconds(0.5);
  ScriptTraining("state: RUNNING generation: 1 train { step: 9 }");
  CommitCut(1, 1, 7);
  SetStatus("state: RUNNING generation: 1 train { step: 12 }", "on_wish");
  const RunEnd end = RunAndSignal(SIGTERM);
  EXPECT_EQ(end.kind, RunEnd::INTERRUPTED);
  EXPECT_THAT(end.outlook, HasSubstr("continues from step 7 (cut_0001_000001); about 5 steps after "
                                     "it are lost"));
  EXPECT_THAT(end.warnings,
              ElementsAre("the run did not stop with a last cut within 0.5 s (stop_seconds)"));
  ExpectNobodyIsLeft();
}

TEST_F(LauncherStopTest, TheSecondSignalEndsTheRunAtOnce) {
  ScriptTraining();
  TakeNextWish();
  const auto start = Clock::now();
  const RunEnd end = RunAndSignal(SIGINT, [&](const StatusAnswer& status) {
    if (status.train().step() == 7) kill(getpid(), SIGTERM);
  });
  EXPECT_EQ(end.kind, RunEnd::INTERRUPTED);
  EXPECT_EQ(end.message, "Interrupt") << "the first one";
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(10)) << "long before stop_seconds";
  ExpectNobodyIsLeft();
}

// timeout(1) sends a signal to the process and to its group, so it arrives twice. (More about this
// in stop_signals_test.cc.)
TEST_F(LauncherStopTest, ASignalThatIsSentTwiceAtOnceIsOne) {
  for (const int signal : {SIGTERM, SIGINT}) {
    if (signal == SIGINT) {
      TearDown();
      messages_.clear();
      asked_ = 0;
      SetUp();
    }
    ScriptTraining();
    TakeNextWish();
    int after_wish = 0;
    on_message_ = [signal] { kill(getpid(), signal); };
    const RunEnd end = RunAndSignal(signal, [&](const StatusAnswer& status) {
      if (status.train().step() == 7) ++after_wish;
      if (after_wish == 8) kill(getpid(), signal);  // seconds later
    });
    EXPECT_EQ(end.kind, RunEnd::INTERRUPTED);
    EXPECT_GE(after_wish, 8) << "the repeat was no second signal";
    EXPECT_THAT(messages_, SizeIs(1));
  }
}

TEST_F(LauncherStopTest, ADeathDuringTheLastCutEndsTheRun) {
  job_.set_max_restarts(5);
  ScriptTraining();
  TakeNextWish();
  const RunEnd end = RunAndSignal(SIGINT, [&](const StatusAnswer& status) {
    if (status.train().step() == 7) launcher_->Signal(EMBEDDING_PS, 0, SIGKILL).IgnoreError();
  });
  EXPECT_EQ(end.kind, RunEnd::INTERRUPTED);
  EXPECT_THAT(messages_, SizeIs(1)) << "that of the signal";
  EXPECT_THAT(end.warnings,
              ElementsAre(HasSubstr("there is no last cut: embedding_ps 0 was killed")));
  EXPECT_THAT(end.outlook,
              HasSubstr("continues from the beginning; about 7 steps after it are lost"));
  ExpectNobodyIsLeft();
}

TEST_F(LauncherStopTest, ADeathRightAfterTheLastCutWasCommittedLosesNothing) {
  job_.set_max_restarts(5);
  ScriptTraining();
  TakeNextWish();
  bool committed = false;
  const RunEnd end = RunAndSignal(SIGINT, [&](const StatusAnswer& status) {
    if (status.train().step() != 7 || std::exchange(committed, true)) return;
    WriteCut(dir_ + "/run", 1, 1, 7);
    AppendToLog("cut { generation: 1 cut: 'cut_0001_000001' step: 7 leave: true }");
    launcher_->Signal(EMBEDDING_PS, 0, SIGKILL).IgnoreError();
  });
  EXPECT_EQ(end.kind, RunEnd::INTERRUPTED);
  EXPECT_THAT(end.warnings, SizeIs(0)) << "there is a last cut";
  EXPECT_THAT(end.outlook, HasSubstr("no work is lost"));
  ExpectNobodyIsLeft();
}

// The run was stopped with a last cut and then resumed. It has trained since it was resumed, so the
// work after that cut is lost.
TEST_F(LauncherStopTest, ALastCutOfAnEarlierGenerationDoesNotSaveTheWorkOfThisOne) {
  job_.set_max_restarts(5);
  AppendGeneration(1);
  WriteCut(dir_ + "/run", 1, 1, 5);
  AppendToLog("cut { generation: 1 cut: 'cut_0001_000001' step: 5 leave: true }");
  AppendToLog("generation { generation: 2 cut: 'cut_0001_000001' began: BEGAN_RESUME job { " +
              job_.ShortDebugString() + " } }");
  ScriptCoordinator("state: RUNNING generation: 2");
  SetStatus("state: RUNNING generation: 2 train { step: 7 }", "on_wish");
  const RunEnd end = RunAndSignal(SIGINT, [&](const StatusAnswer& status) {
    if (status.train().step() == 7) launcher_->Signal(EMBEDDING_PS, 0, SIGKILL).IgnoreError();
  });
  EXPECT_EQ(end.kind, RunEnd::INTERRUPTED);
  EXPECT_THAT(end.warnings, ElementsAre(HasSubstr("there is no last cut")));
  EXPECT_THAT(end.outlook, HasSubstr("about 2 steps after it are lost"));
  ExpectNobodyIsLeft();
}

TEST_F(LauncherStopTest, AStopThatAnotherCommandWishedEndsTheRunWell) {
  for (const char* role : {"embedding_ps", "embedding_worker", "data_loader", "nn_worker"}) {
    SetProgram(role, "sleep 1; exit 0");
  }
  ScriptTraining("state: STOPPED generation: 1 train { step: 7 } " + kStopped);
  CommitCut(1, 1, 7);
  const RunEnd end = Run([] {});
  EXPECT_EQ(end.kind, RunEnd::STOPPED);
  EXPECT_THAT(end.outlook, HasSubstr("no work is lost; `satrap resume "));
  EXPECT_THAT(end.warnings, SizeIs(0));
  ExpectNobodyIsLeft();
}

TEST_F(LauncherStopTest, AWishThatIsRefusedIsMadeAgainUntilItIsTaken) {
  ScriptTraining();
  const RunEnd end = RunAndSignal(SIGINT, [&](const StatusAnswer& status) {
    if (asked_ == 4) TakeNextWish();
    if (status.train().step() == 7) StopRun(SIGKILL);
  });
  EXPECT_EQ(end.kind, RunEnd::INTERRUPTED);
  EXPECT_THAT(end.outlook, HasSubstr("no work is lost; `satrap resume "));
  EXPECT_THAT(messages_,
              ElementsAre(HasSubstr("\n  it waits: coordinator: the run takes no more cuts"),
                          "the run takes its last cut now"));
  EXPECT_THAT(end.warnings, SizeIs(0));
}

TEST_F(LauncherStopTest, ACoordinatorThatDoesNotAnswerAtOnceIsWaitedFor) {
  ScriptTraining();
  TakeNextWish();
  const RunEnd end = RunAndSignal(SIGINT, [&](const StatusAnswer& status) {
    if (asked_ == 1) std::filesystem::remove(dir_ + "/run/status.textproto");
    if (asked_ == 5) SetStatus("state: RUNNING generation: 1");
    if (status.train().step() == 7) StopRun(SIGKILL);
  });
  EXPECT_EQ(end.kind, RunEnd::INTERRUPTED);
  EXPECT_THAT(messages_, ElementsAre(HasSubstr("\n  it waits: the coordinator does not answer"),
                                     "the run takes its last cut now"));
}

TEST_F(LauncherStopTest, AStopDuringAChangeOfSizeWaitsForItsCut) {
  ScriptTraining("state: RUNNING generation: 1 train { step: 9 }");
  const RunEnd end = RunAndSignal(SIGINT, [&](const StatusAnswer&) {
    if (asked_ != 4) return;
    CommitCut(1, 1, 9);
    AppendToLog(
        "generation { generation: 2 cut: 'cut_0001_000001' began: BEGAN_SCALE_ANNOUNCED "
        "job { name: 'scripts' } }");
    SetStatus("state: RESTARTING generation: 1 train { step: 9 }");
  });
  EXPECT_EQ(end.kind, RunEnd::INTERRUPTED);
  EXPECT_THAT(end.outlook, AllOf(HasSubstr("no work is lost; `satrap resume "),
                                 HasSubstr("continues from step 9 (cut_0001_000001)")));
  EXPECT_THAT(end.warnings, SizeIs(0));
  EXPECT_THAT(messages_, SizeIs(1)) << "that of the signal: the new size is not started";
  ExpectNobodyIsLeft();
}

TEST_F(LauncherStopTest, AStopThatNobodyTakesIsGivenUpAndTheLossIsNotClaimedToBeKnown) {
  job_.set_stop_seconds(0.5);
  ScriptTraining("state: RUNNING generation: 1 train { step: 9 }");
  CommitCut(1, 1, 9);
  const RunEnd end = RunAndSignal(SIGINT);
  EXPECT_EQ(end.kind, RunEnd::INTERRUPTED);
  EXPECT_THAT(end.warnings,
              ElementsAre("the last cut could not be requested within 0.5 s (stop_seconds): "
                          "coordinator: the run takes no more cuts"));
  EXPECT_THAT(end.outlook, AllOf(HasSubstr("(cut_0001_000001); at most the work after it is lost"),
                                 Not(HasSubstr("no work is lost"))));
}

TEST_F(LauncherStopTest, AGenerationThatHasNotBegunIsStoppedAtOnce) {
  ScriptTraining("state: STARTING generation: 1");
  CommitCut(1, 1, 9);
  SetStatus("state: STOPPED generation: 1 " + kStopped, "on_wish");
  const auto start = Clock::now();
  const RunEnd end = RunAndSignal(SIGINT);
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(10)) << "roles that still load are killed";
  EXPECT_EQ(end.kind, RunEnd::INTERRUPTED);
  EXPECT_THAT(end.outlook, HasSubstr("no work is lost; `satrap resume "));
  EXPECT_THAT(end.warnings, SizeIs(0));
  ExpectNobodyIsLeft();
}

// Here the signal comes before the run's end. The text must be true even if the signal comes after
// the end.
TEST_F(LauncherStopTest, ARunMayFinishAlthoughASignalHasAskedItToStop) {
  ScriptTraining();
  std::string late;
  on_end_ = [&] { late = launcher_->LateSignalText(); };
  const RunEnd end = RunAndSignal(SIGINT, [&](const StatusAnswer&) {
    if (asked_ != 3) return;
    SetStatus("state: FINISHED generation: 1 result { steps: 9 }");
    EndRoles(SIGKILL);
  });
  EXPECT_EQ(end.kind, RunEnd::FINISHED);
  EXPECT_EQ(late,
            "Interrupt came too late to stop the run, which has finished; its result is complete");
}

TEST_F(LauncherStopTest, ASignalAfterTheEndIsKept) {
  ScriptTraining("state: FINISHED generation: 1 result { steps: 9 }");
  std::string before;
  std::string late;
  on_end_ = [&] {
    before = launcher_->LateSignalText();
    kill(getpid(), SIGINT);
    late = launcher_->LateSignalText();
  };
  EXPECT_EQ(Run([this] { EndRoles(SIGKILL); }).kind, RunEnd::FINISHED);
  EXPECT_EQ(before, "");
  EXPECT_EQ(late,
            "Interrupt came too late to stop the run, which has finished; its result is complete");
}

TEST_F(LauncherStopTest, AStopWithoutALastCutTellsWhyAndWhatIsLost) {
  ScriptTraining("state: STOPPED generation: 1 train { step: 12 } ending { text: 'too late' }");
  CommitCut(1, 1, 7);
  const RunEnd end = Run([] {});
  EXPECT_EQ(end.kind, RunEnd::STOPPED);
  EXPECT_THAT(end.warnings, ElementsAre("too late"));
  EXPECT_THAT(end.outlook, HasSubstr("(cut_0001_000001); about 5 steps after it are lost"));
}

TEST_F(LauncherStopTest, ADamagedNewestCutIsNotToldAsThePlaceToGoOnFrom) {
  ScriptTraining();
  CommitCut(1, 1, 7);
  const RunEnd end =
      Run([] {}, {},
          [&](const StatusAnswer&) {
            std::filesystem::remove(dir_ + "/run/checkpoints/cut_0001_000001/manifest");
            launcher_->Signal(EMBEDDING_PS, 0, SIGKILL).IgnoreError();
            return true;
          });
  EXPECT_EQ(end.kind, RunEnd::FAILED);
  EXPECT_THAT(end.outlook, AllOf(HasSubstr("the newest cut, cut_0001_000001, is damaged: "),
                                 HasSubstr(" --from CUT`"), Not(HasSubstr("continues from"))));
}

// The launcher's quick check finds nothing wrong with the cut, but the PS that loaded the cut has
// found damage and advises the user to choose another cut.
TEST_F(LauncherStopTest, ARunThatFailedOfItsCutIsNotSentIntoTheSameFailure) {
  ScriptTraining(
      "state: FAILED generation: 1 ending { origin { role: EMBEDDING_PS index: 0 } "
      "advice: RESUME_FROM_ANOTHER_CUT text: 'embedding_ps 0: a.rows is damaged; take another' }");
  CommitCut(1, 1, 7);
  const RunEnd end = Run([] {});
  EXPECT_EQ(end.kind, RunEnd::FAILED);
  EXPECT_THAT(end.message, HasSubstr("a.rows is damaged"));
  EXPECT_EQ(end.outlook, "");
  EXPECT_EQ(end.ending.advice(), Ending::RESUME_FROM_ANOTHER_CUT);
}

}  // namespace
}  // namespace satrap
