// Tests how a role's process ends, and what it knows about its run.

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <new>
#include <string>
#include <thread>

#include "common/base/status_macros.h"
#include "common/checkpoint/start_cut.h"
#include "common/checkpoint/storage_check.h"
#include "common/file/file_system.h"
#include "common/role/testing/role_fixture.h"
#include "common/rpc/header.h"
#include "common/testing/denormal_probe.h"
#include "common/thread/mutex.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

TEST_F(RoleRuntimeTest, ARunThatFinishesEndsTheProcessWell) {
  EXPECT_EXIT(RunCase([](RoleRuntime& runtime, FakeCoordinator&) {
                RETURN_IF_ERROR(runtime.Join());
                if (runtime.AddressOf(NN_WORKER, 0) != "127.0.0.1") abort();
                return FinishRole(runtime);
              }),
              ::testing::ExitedWithCode(0), "");
}

TEST_F(RoleRuntimeTest, TheMainThreadFlushesDenormalsToZero) {
  EXPECT_EXIT(RunCase([](RoleRuntime& runtime, FakeCoordinator&) {
                if (!FlushesToZeroHere()) abort();
                RETURN_IF_ERROR(runtime.Join());
                return FinishRole(runtime);
              }),
              ::testing::ExitedWithCode(0), "");
}

// Heartbeats must run before the role is ready, because it may load for longer than the coordinator
// waits for a heartbeat.
TEST_F(RoleRuntimeTest, ARoleHasItsRunAndSendsHeartbeatsBeforeItIsReady) {
  EXPECT_EXIT(RunCase(
                  [](RoleRuntime& runtime, FakeCoordinator& coordinator) {
                    if (runtime.envelope().run_id() != kRunId) abort();
                    if (runtime.envelope().generation() != 3) abort();
                    coordinator.AwaitHeartbeats(3);
                    if (coordinator.state() != STARTING) abort();
                    RETURN_IF_ERROR(runtime.Join());
                    if (coordinator.state() != RUNNING) abort();
                    return FinishRole(runtime);
                  },
                  [](FakeCoordinator& coordinator) { coordinator.StartWhenReady(); }),
              ::testing::ExitedWithCode(0), "");
}

TEST_F(RoleRuntimeTest, HasWhatTheCoordinatorSaysOfTheJobAndTheCut) {
  EXPECT_EXIT(RunCase([](RoleRuntime& runtime, FakeCoordinator&) {
                if (runtime.job().name() != "tiny") abort();
                if (runtime.cut_folder() != "/run/checkpoints/cut_0002_000004") abort();
                if (runtime.position().step() != 40) abort();
                if (runtime.ledger().epochs(0).rows() != 5) abort();
                RETURN_IF_ERROR(runtime.Join());
                if (runtime.order_fingerprint() != 99) abort();
                return FinishRole(runtime);
              }),
              ::testing::ExitedWithCode(0), "");
}

// The body of a role whose runtime must not call it.
absl::Status NoBody(RoleRuntime&, FakeCoordinator&) { abort(); }

TEST_F(RoleRuntimeTest, ARoleThatTheGenerationHasNoPlaceForIsToBeStartedAgain) {
  EXPECT_EXIT(RunCase(NoBody,
                      [](FakeCoordinator& coordinator) {
                        coordinator.RefuseRegister(absl::FailedPreconditionError("has no place"));
                      }),
              ::testing::ExitedWithCode(kExitStartAgain), "error: nn_worker: .*has no place");
  EXPECT_EQ(Left().text(), "coordinator: has no place");
}

TEST_F(RoleRuntimeTest, ARoleThatRegistersAtAGenerationThatIsOverWaitsForTheNext) {
  EXPECT_EXIT(RunCase(
                  [](RoleRuntime& runtime, FakeCoordinator& coordinator) {
                    if (coordinator.waits_left() != 0) abort();
                    RETURN_IF_ERROR(runtime.Join());
                    return FinishRole(runtime);
                  },
                  [](FakeCoordinator& coordinator) { coordinator.LetWait(3); }),
              ::testing::ExitedWithCode(0), "there is no place; waiting for a place");
}

TEST_F(RoleRuntimeTest, ARoleOfAPodSaysWhichPodAndWhichBuildItIs) {
  EXPECT_EXIT(RunCase(
                  [](RoleRuntime& runtime, FakeCoordinator& coordinator) {
                    if (coordinator.registration().holder() != "pod-1") abort();
                    if (coordinator.registration().build() != "b0") abort();
                    RETURN_IF_ERROR(runtime.Join());
                    return FinishRole(runtime);
                  },
                  nullptr, {"--holder=pod-1", "--build=b0"}),
              ::testing::ExitedWithCode(0), "");
}

TEST_F(RoleRuntimeTest, ARoleWhosePlaceAnotherProcessHasIsToBeStartedAgain) {
  EXPECT_EXIT(RunCase(
                  [](RoleRuntime&, FakeCoordinator& coordinator) -> absl::Status {
                    coordinator.TellThatAnotherHasThePlace();
                    while (true) pause();
                  },
                  nullptr, {"--holder=pod-2"}),
              ::testing::ExitedWithCode(kExitStartAgain), "pod-1 has the place");
  EXPECT_EQ(Left().text(), "pod-1 has the place");
}

TEST_F(RoleRuntimeTest, AFailureIsLoggedAndLeftAlthoughAnotherProcessHasThePlace) {
  EXPECT_EXIT(RunCase(
                  [](RoleRuntime&, FakeCoordinator&) -> absl::Status {
                    return absl::DataLossError("a row is damaged");
                  },
                  [](FakeCoordinator& coordinator) { coordinator.TellThatAnotherHasThePlace(); },
                  {"--holder=pod-2"}),
              ::testing::ExitedWithCode(kExitStartAgain),
              "a row is damaged(.|\n)*pod-1 has the place");
  EXPECT_EQ(Left().kind(), Ending::DAMAGED);
  EXPECT_EQ(Left().text(), "a row is damaged");
}

TEST_F(RoleRuntimeTest, ARoleSaysHowTheProcessBeforeItEnded) {
  EXPECT_EXIT(RunCase(
                  [](RoleRuntime& runtime, FakeCoordinator& coordinator) {
                    const Ending before = coordinator.registration().before();
                    if (before.text() != "was killed" || before.origin().pid() != 7) abort();
                    RETURN_IF_ERROR(runtime.Join());
                    return FinishRole(runtime);
                  },
                  nullptr, {"--ended=origin { pid: 7 }", "--cause=was killed"}),
              ::testing::ExitedWithCode(0), "");
}

// A job like that of RunCase, but with run_dir `name`, a folder in the case's working folder.
JobConfig JobIn(const std::string& name) {
  JobConfig job;
  job.set_name("tiny");
  job.set_run_dir(name);
  job.mutable_nn_worker()->set_threads(1);
  return job;
}

TEST_F(RoleRuntimeTest, ARoleThatSeesAnotherFolderThanTheCoordinatorFails) {
  EXPECT_EXIT(
      RunCase([](RoleRuntime&, FakeCoordinator&) { return absl::InternalError("it reads a cut"); },
              [](FakeCoordinator& coordinator) {
                if (mkdir("run", 0755) != 0) abort();
                if (!LeaveRunId("run", kRunId + 1, DiskFileSystem()).ok()) abort();
                coordinator.SetJob(JobIn("run"));
                coordinator.StartWhenReady();
              }),
      ::testing::ExitedWithCode(kExitFailed),
      "run_dir run is not the coordinator's folder here: run/run_id is that of another run");
  EXPECT_EQ(Left().kind(), Ending::REFUSED);
}

TEST_F(RoleRuntimeTest, ARoleIsReadyOnceItSeesTheFolderOfTheCoordinator) {
  EXPECT_EXIT(RunCase(
                  [](RoleRuntime& runtime, FakeCoordinator&) {
                    RETURN_IF_ERROR(runtime.Join());
                    return FinishRole(runtime);
                  },
                  [](FakeCoordinator& coordinator) {
                    coordinator.SetJob(JobIn("run"));
                    coordinator.StartWhenReady();
                    std::thread mount([&coordinator] {
                      coordinator.AwaitHeartbeats(3);
                      if (coordinator.state() != STARTING) abort();
                      if (mkdir("run", 0755) != 0) abort();
                      if (!LeaveRunId("run", kRunId, DiskFileSystem()).ok()) abort();
                    });
                    mount.detach();
                  }),
              ::testing::ExitedWithCode(0), "");
}

TEST_F(RoleRuntimeTest, TheMembersAreToldUntilTheRoleKnowsThem) {
  EXPECT_EXIT(RunCase(
                  [](RoleRuntime& runtime, FakeCoordinator& coordinator) {
                    RETURN_IF_ERROR(runtime.Join());
                    coordinator.AwaitHeartbeats(2);
                    if (coordinator.heartbeats_with_members() < 2) abort();
                    if (runtime.AddressOf(NN_WORKER, 0) != "127.0.0.1") abort();
                    return FinishRole(runtime);
                  },
                  [](FakeCoordinator& coordinator) { coordinator.StartWhenReady(); }),
              ::testing::ExitedWithCode(0), "");
}

TEST_F(RoleRuntimeTest, AnExceptionThatNobodyCatchesIsLeftAsAnEnding) {
  EXPECT_EXIT(RunCase([](RoleRuntime& runtime, FakeCoordinator&) -> absl::Status {
                RETURN_IF_ERROR(runtime.Join());
                const auto memory = std::make_exception_ptr(std::bad_alloc());
                std::thread([&memory] { std::rethrow_exception(memory); }).join();
                return absl::OkStatus();
              }),
              ::testing::ExitedWithCode(kExitStartAgain),
              "error: nn_worker 0, while it takes part in the run: no memory is left");
  EXPECT_EQ(Left().kind(), Ending::NO_MEMORY);
}

TEST_F(RoleRuntimeTest, ARoleOfAnotherBuildExits1) {
  EXPECT_EXIT(RunCase(NoBody,
                      [](FakeCoordinator& coordinator) {
                        coordinator.RefuseRegister(absl::InvalidArgumentError("other sources"));
                      }),
              ::testing::ExitedWithCode(1), "error: nn_worker: .*other sources");
}

TEST_F(RoleRuntimeTest, ARoleThatComesAfterTheEndExits0) {
  EXPECT_EXIT(RunCase(
                  [](RoleRuntime& runtime, FakeCoordinator&) {
                    const absl::Status joined = runtime.Join();
                    abort();
                    return joined;
                  },
                  [](FakeCoordinator& coordinator) { coordinator.SetState(FINISHED); }),
              ::testing::ExitedWithCode(0), "the run has finished already");
}

TEST_F(RoleRuntimeTest, TheEndOfTheGenerationExits76WhateverTheProcessIsDoing) {
  EXPECT_EXIT(RunCase([](RoleRuntime& runtime, FakeCoordinator& coordinator) {
                RETURN_IF_ERROR(runtime.Join());
                coordinator.SetState(RESTARTING);
                while (true) pause();
              }),
              ::testing::ExitedWithCode(kExitEchoStartAgain),
              "this generation is over: somebody else broke");
  EXPECT_EQ(Left().text(), "somebody else broke")
      << "what others have heard, without an introduction";
}

TEST_F(RoleRuntimeTest, AStoppedRunExits0) {
  EXPECT_EXIT(RunCase([](RoleRuntime& runtime, FakeCoordinator& coordinator) {
                RETURN_IF_ERROR(runtime.Join());
                coordinator.SetState(STOPPED);
                while (true) pause();
              }),
              ::testing::ExitedWithCode(0), "the run has stopped");
}

TEST_F(RoleRuntimeTest, AFailureThatARestartMayCureExits75) {
  EXPECT_EXIT(RunCase([](RoleRuntime& runtime, FakeCoordinator&) {
                RETURN_IF_ERROR(runtime.Join());
                runtime.failure_sink()(absl::UnavailableError("the peer is away"));
                runtime.WaitForFinish();
                return absl::OkStatus();
              }),
              ::testing::ExitedWithCode(kExitStartAgain), "coordinator was told: the peer is away");
  EXPECT_EQ(Left().why(), Ending::MEMBER_FAILED);
  EXPECT_TRUE(IsOf(Left(), NN_WORKER, 0));
  EXPECT_EQ(Left().text(), "the peer is away");
}

TEST_F(RoleRuntimeTest, ARefusalByAPeerOfAnotherGenerationExits75AndIsNotTold) {
  EXPECT_EXIT(
      RunCase([](RoleRuntime& runtime, FakeCoordinator& coordinator) {
        RETURN_IF_ERROR(runtime.Join());
        coordinator.SetFirstCause(EndingOf(Ending::OTHER, "nobody asked"));
        Envelope other = runtime.envelope();
        other.set_generation(4);
        runtime.failure_sink()(rpc::CheckEnvelope(runtime.envelope(), other, "embedding_ps 0"));
        runtime.WaitForFinish();
        return absl::OkStatus();
      }),
      ::testing::ExitedWithCode(kExitStartAgain), "^[^$]*belongs to another run[^\n]*\n$");
  EXPECT_EQ(Left().why(), Ending::SUPERSEDED);
}

TEST_F(RoleRuntimeTest, ARoleThatIsRefusedAsOfAnotherRunExits75) {
  EXPECT_EXIT(RunCase([](RoleRuntime& runtime, FakeCoordinator& coordinator) {
                RETURN_IF_ERROR(runtime.Join());
                coordinator.RefuseHeartbeats();
                while (true) pause();
              }),
              ::testing::ExitedWithCode(kExitStartAgain),
              "the coordinator at unix:coordinator refuses nn_worker 0: .*another run");
}

TEST_F(RoleRuntimeTest, AFailureIsToldToTheCoordinatorAndExits1) {
  EXPECT_EXIT(RunCase([](RoleRuntime& runtime, FakeCoordinator&) {
                RETURN_IF_ERROR(runtime.Join());
                runtime.failure_sink()(absl::DataLossError("rows are gone"));
                runtime.WaitForFinish();
                return absl::OkStatus();
              }),
              ::testing::ExitedWithCode(1), "coordinator was told: rows are gone");
}

TEST_F(RoleRuntimeTest, AnErrorOfTheBodyIsAFailure) {
  EXPECT_EXIT(
      RunCase([](RoleRuntime&, FakeCoordinator&) { return absl::NotFoundError("no such model"); }),
      ::testing::ExitedWithCode(1), "error +nn_worker/0 no such model");
}

// Ends the process in its destructor, with a code that the runtime does not use.
struct ExitsWhenItGoes {
  ~ExitsWhenItGoes() { _exit(7); }
};

TEST_F(RoleRuntimeTest, AFailureAfterAnothersIsLoggedAsItsEcho) {
  EXPECT_EXIT(RunCase([](RoleRuntime& runtime, FakeCoordinator& coordinator) {
                RETURN_IF_ERROR(runtime.Join());
                coordinator.SetFirstCause(EndingOf(Ending::MEMBER_FAILED, NN_WORKER, 1,
                                                   "nn_worker 1: the model is damaged"));
                return absl::DataLossError("a row is damaged");
              }),
              ::testing::ExitedWithCode(kExitEchoFailed),
              "a row is damaged.*\n.*the run has failed: nn_worker 1: the model is damaged");
  EXPECT_TRUE(IsOf(Left(), NN_WORKER, 1));
  EXPECT_EQ(Left().text(), "nn_worker 1: the model is damaged");
}

// Whose failure it is depends only on the ending's origin, even if its text names another process.
TEST_F(RoleRuntimeTest, WordsInTheTextOfAnEndingMakeNoEchoAndNoFailureOfOnesOwn) {
  EXPECT_EXIT(RunCase([](RoleRuntime& runtime, FakeCoordinator& coordinator) {
                RETURN_IF_ERROR(runtime.Join());
                coordinator.SetFirstCause(EndingOf(Ending::MEMBER_FAILED, NN_WORKER, 1,
                                                   "nn_worker 0: this names the wrong one"));
                return absl::DataLossError("a row is damaged");
              }),
              ::testing::ExitedWithCode(kExitEchoFailed), "");
  EXPECT_EXIT(RunCase([](RoleRuntime& runtime, FakeCoordinator& coordinator) {
                RETURN_IF_ERROR(runtime.Join());
                coordinator.SetFirstCause(EndingOf(Ending::MEMBER_FAILED, NN_WORKER, 0,
                                                   "nn_worker 1: the run has failed: not so"));
                return absl::DataLossError("a row is damaged");
              }),
              ::testing::ExitedWithCode(kExitFailed), "");
}

TEST_F(RoleRuntimeTest, AFailureOfTheStartCutIsToldAndLeftWithItsAdvice) {
  EXPECT_EXIT(RunCase([](RoleRuntime&, FakeCoordinator&) {
                return MarkAsStartCutError(absl::DataLossError("a.rows is damaged"));
              }),
              ::testing::ExitedWithCode(kExitFailed),
              "a.rows is damaged; continue from another cut");
  EXPECT_EQ(Left().advice(), Ending::RESUME_FROM_ANOTHER_CUT);
}

TEST_F(RoleRuntimeTest, AnErrorIsToldBeforeAnythingOfTheBodyGoes) {
  EXPECT_EXIT(RunCase([](RoleRuntime& runtime, FakeCoordinator&) {
                RETURN_IF_ERROR(runtime.Join());
                const ExitsWhenItGoes owned;
                runtime.ExitUnlessOk(absl::OkStatus());
                runtime.ExitUnlessOk(absl::DataLossError("the model is damaged"));
                return absl::OkStatus();
              }),
              ::testing::ExitedWithCode(1), "coordinator was told: the model is damaged");
}

TEST_F(RoleRuntimeTest, AnErrorAfterTheEndIsLoggedAndExits1) {
  EXPECT_EXIT(RunCase([](RoleRuntime& runtime, FakeCoordinator&) {
                RETURN_IF_ERROR(runtime.Join());
                const absl::Status finished = runtime.Finish(RunResult());
                if (!finished.ok()) return finished;
                runtime.WaitForFinish();
                return absl::DataLossError("the last file is not written");
              }),
              ::testing::ExitedWithCode(1), "error +nn_worker/0 the last file is not written");
}

TEST_F(RoleRuntimeTest, AProgressSourceIsNotCalledOnceItsRegistrationIsGone) {
  EXPECT_EXIT(RunCase([](RoleRuntime& runtime, FakeCoordinator& coordinator) {
                {
                  const auto registration =
                      runtime.SetProgressSource([](HeartbeatRequest*) { abort(); });
                }
                RETURN_IF_ERROR(runtime.Join());
                coordinator.SetState(FINISHED);
                runtime.WaitForFinish();
                return absl::OkStatus();
              }),
              ::testing::ExitedWithCode(0), "");
}

// The number of times that threads of this process go to sleep within 300 ms, measured by a timer
// of the runtime.
int64_t SleepsIn300Ms(RoleRuntime& runtime) {
  Mutex mutex;
  CondVar changed;
  bool over = false;
  rusage before;
  getrusage(RUSAGE_SELF, &before);
  runtime.executor()->PostAfter(300 * 1000, [&] {
    MutexLock lock(&mutex);
    over = true;
    changed.NotifyAll();
  });
  MutexLock lock(&mutex);
  while (!over) changed.Wait(&mutex);
  rusage after;
  getrusage(RUSAGE_SELF, &after);
  return after.ru_nvcsw - before.ru_nvcsw;
}

// Prints "few sleeps" if the threads of this process slept fewer than 100 times in at least one of
// five periods of 300 ms, otherwise "many sleeps". A thread that polls each millisecond sleeps more
// often than that in every period. Work that happens only once, such as gRPC's start, is only in
// the first periods.
void PrintWhetherSleepsAreFew(RoleRuntime& runtime) {
  int64_t least = SleepsIn300Ms(runtime);
  for (int i = 1; i < 5 && least >= 100; ++i) least = std::min(least, SleepsIn300Ms(runtime));
  fprintf(stderr, "%s sleeps: %d\n", least < 100 ? "few" : "many", static_cast<int>(least));
}

TEST_F(RoleRuntimeTest, DealtPartitionsComeAgainUntilTheyAreKnown) {
  EXPECT_EXIT(RunCase([](RoleRuntime& runtime, FakeCoordinator& coordinator) {
                std::atomic<uint32_t> known = 2;
                std::atomic<int> calls = 0;
                const auto progress = runtime.SetProgressSource(
                    [&](HeartbeatRequest* request) { request->set_known_partitions(known); });
                runtime.SetDealtSink([&](const DealtPartition& dealt) {
                  if (dealt.loader() != 1 || dealt.split() != (calls % 2 == 0 ? 2 : 3)) abort();
                  // Does not report the partitions of the first two calls as known, as if the first
                  // answer had been lost.
                  if (++calls > 2) ++known;
                });
                coordinator.Deal({2, 3});
                while (known < 4) coordinator.AwaitHeartbeats(1);
                coordinator.AwaitHeartbeats(2);
                if (calls != 4) abort();
                runtime.SetDealtSink(nullptr);
                coordinator.Deal({2, 3, 4});
                coordinator.AwaitHeartbeats(2);
                if (calls != 4) abort();
                return runtime.Finish(RunResult());
              }),
              ::testing::ExitedWithCode(0), "");
}

TEST_F(RoleRuntimeTest, NothingPollsBeforeTheRoleIsReady) {
  EXPECT_EXIT(RunCase([](RoleRuntime& runtime, FakeCoordinator&) {
                PrintWhetherSleepsAreFew(runtime);
                RETURN_IF_ERROR(runtime.Join());
                return FinishRole(runtime);
              }),
              ::testing::ExitedWithCode(0), "few sleeps");
}

TEST_F(RoleRuntimeTest, NothingPollsWhileTheCoordinatorIsSilent) {
  EXPECT_EXIT(RunCase([](RoleRuntime& runtime, FakeCoordinator& coordinator) {
                RETURN_IF_ERROR(runtime.Join());
                coordinator.FallSilent();
                coordinator.AwaitUnanswered(1);
                // Waits until the next heartbeat is overdue.
                for (int i = 0; i < 4; ++i) SleepsIn300Ms(runtime);
                PrintWhetherSleepsAreFew(runtime);
                _exit(0);
              }),
              ::testing::ExitedWithCode(0), "few sleeps");
}

TEST_F(RoleRuntimeTest, AFailedRunEndsWhateverTheProcessIsDoing) {
  EXPECT_EXIT(RunCase([](RoleRuntime& runtime, FakeCoordinator& coordinator) {
                RETURN_IF_ERROR(runtime.Join());
                coordinator.SetState(FAILED);
                while (true) pause();
              }),
              ::testing::ExitedWithCode(kExitEchoFailed), "somebody else broke");
}

TEST_F(RoleRuntimeTest, ASilentCoordinatorEndsTheProcess) {
  EXPECT_EXIT(RunCase([](RoleRuntime& runtime, FakeCoordinator& coordinator) {
                RETURN_IF_ERROR(runtime.Join());
                coordinator.FallSilent();
                while (true) pause();
              }),
              ::testing::ExitedWithCode(kExitStartAgain), "has not answered for 8 s");
  EXPECT_EQ(Left().why(), Ending::COORDINATOR_SILENT);
  EXPECT_TRUE(IsOf(Left(), NN_WORKER, 0));
}

// Runs a role whose command line does not name a coordinator.
[[noreturn]] void RunWithoutCoordinator() {
  std::string args[] = {"nn_worker", "--role_index=0"};
  char* argv[] = {args[0].data(), args[1].data()};
  exit(RunRole(NN_WORKER, 2, argv, [](RoleRuntime&) { return absl::OkStatus(); }));
}

TEST_F(RoleRuntimeTest, AWrongCommandLineIsOneMessage) {
  EXPECT_EXIT(RunWithoutCoordinator(), ::testing::ExitedWithCode(1),
              "error: nn_worker: --coordinator is missing");
}

}  // namespace
}  // namespace satrap
