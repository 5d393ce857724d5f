// Tests how a role's control thread handles answers that are wrong or missing. role_runtime_test.cc
// tests how a role ends, and role_signals_test.cc tests signals.

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/life/life_sign.h"
#include "common/role/testing/role_fixture.h"
#include "common/rpc/endpoints.h"
#include "common/rpc/grpc_server.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

constexpr int kSignPatienceMs = 60000;

// Waits until `dead` leaves a call unanswered. Then makes another coordinator serve at its address.
void ServeInsteadOf(FakeCoordinator* dead) {
  dead->AwaitUnanswered(1);
  static FakeCoordinator next;
  const rpc::Method methods[] = {kRegister, kHeartbeat, kFinish};
  auto server = rpc::GrpcServer::Start("unix:next", rpc::EndpointOptions(),
                                       {rpc::GrpcServer::Service{methods, &next}});
  if (!server.ok() || rename("next", "coordinator") != 0) abort();
  static_cast<void>(server->release());  // it serves until the process ends
}

// The connection stays open but nobody answers, as after the loss of the coordinator's node.
TEST_F(RoleRuntimeTest, ARoleThatGetsNoAnswerAsksOverANewConnection) {
  EXPECT_EXIT(RunCase(
                  [](RoleRuntime& runtime, FakeCoordinator&) {
                    RETURN_IF_ERROR(runtime.Join());
                    return FinishRole(runtime);
                  },
                  [](FakeCoordinator& coordinator) {
                    coordinator.FallSilent();
                    std::thread([&coordinator] { ServeInsteadOf(&coordinator); }).detach();
                  }),
              ::testing::ExitedWithCode(0), "");
}

TEST_F(RoleRuntimeTest, AWishToStopThatIsLostIsMadeAgain) {
  EXPECT_EXIT(RunCase(
                  [](RoleRuntime& runtime, FakeCoordinator& coordinator) {
                    RETURN_IF_ERROR(runtime.Join());
                    kill(getpid(), SIGTERM);
                    coordinator.AwaitWishes(3);
                    coordinator.SetState(STOPPED);
                    while (true) pause();
                  },
                  [](FakeCoordinator& coordinator) {
                    coordinator.RefuseWishes(2, absl::CancelledError("the connection was closed"));
                  }),
              ::testing::ExitedWithCode(0), "the run has stopped");
}

// A refusal means that the run is ending or restarting already, so the role logs it and does not
// repeat its wish.
TEST_F(RoleRuntimeTest, AWishToStopThatIsRefusedIsMadeOnceAndLogged) {
  EXPECT_EXIT(
      RunCase(
          [](RoleRuntime& runtime, FakeCoordinator& coordinator) {
            RETURN_IF_ERROR(runtime.Join());
            kill(getpid(), SIGTERM);
            coordinator.AwaitWishes(1);
            coordinator.AwaitHeartbeats(3);
            if (coordinator.AwaitWishes(1) != 1) abort();
            coordinator.SetState(RESTARTING);
            while (true) pause();
          },
          [](FakeCoordinator& coordinator) {
            coordinator.RefuseWishes(
                100, absl::FailedPreconditionError("a change of size is already in progress"));
          }),
      ::testing::ExitedWithCode(kExitEchoStartAgain), "a change of size is already in progress");
}

// A pipe for signs of life, and the flag that names it.
struct LifePipe {
  LifePipe() {
    if (pipe2(ends, O_CLOEXEC) != 0) abort();
  }
  std::string Flag() const { return absl::StrCat("--alive=", ends[1]); }
  // Waits up to `timeout_ms` for signs in the pipe and takes them all; false if none comes.
  bool Take(int timeout_ms) const {
    pollfd waited = {ends[0], POLLIN, 0};
    char bytes[4096];
    return poll(&waited, 1, timeout_ms) == 1 && read(ends[0], bytes, sizeof(bytes)) > 0;
  }
  int ends[2];
};

// Runs a role whose coordinator does not exist. Exits with 4 after some signs of life.
void LookForACoordinatorAndCountSigns() {
  const LifePipe life;
  std::thread([&life] {
    for (int i = 0; i < 3; ++i) {
      if (!life.Take(kSignPatienceMs)) abort();
    }
    _exit(4);
  }).detach();
  std::vector<std::string> args = {"nn_worker", "--coordinator=unix:nobody", life.Flag()};
  std::vector<char*> argv;
  for (std::string& arg : args) argv.push_back(arg.data());
  RunRole(NN_WORKER, static_cast<int>(argv.size()), argv.data(),
          [](RoleRuntime&) { return absl::OkStatus(); });
}

TEST_F(RoleRuntimeTest, ARoleThatFindsNoCoordinatorGivesSignsOfLife) {
  EXPECT_EXIT(LookForACoordinatorAndCountSigns(), ::testing::ExitedWithCode(4), "");
}

TEST_F(RoleRuntimeTest, ARoleGivesSignsOfLifeBeforeAndAfterItJoins) {
  EXPECT_EXIT(
      {
        const LifePipe life;
        RunCase(
            [&life](RoleRuntime& runtime, FakeCoordinator&) {
              for (int i = 0; i < 2; ++i) {
                if (!life.Take(kSignPatienceMs)) abort();
              }
              RETURN_IF_ERROR(runtime.Join());
              for (int i = 0; i < 3; ++i) {
                if (!life.Take(kSignPatienceMs)) abort();
              }
              return FinishRole(runtime);
            },
            nullptr, {life.Flag()});
      },
      ::testing::ExitedWithCode(0), "");
}

TEST_F(RoleRuntimeTest, ARoleWhoseHeartbeatsHangGivesNoSignOfLife) {
  EXPECT_EXIT(
      {
        const LifePipe life;
        RunCase(
            [&life](RoleRuntime& runtime, FakeCoordinator&) -> absl::Status {
              const auto progress = runtime.SetProgressSource([&life](HeartbeatRequest*) {
                // This runs on the thread of the heartbeats, so a sign that comes now is another
                // thread's.
                life.Take(0);
                _exit(life.Take(2 * kLifeSignPeriodMs) ? 3 : 4);
              });
              while (true) pause();
            },
            nullptr, {life.Flag()});
      },
      ::testing::ExitedWithCode(4), "");
}

TEST_F(RoleRuntimeTest, AFailureOfWhichNobodyHearsExits75AndIsLeft) {
  EXPECT_EXIT(RunCase([](RoleRuntime& runtime, FakeCoordinator& coordinator) {
                RETURN_IF_ERROR(runtime.Join());
                coordinator.IgnoreFailures();
                runtime.failure_sink()(absl::DataLossError("rows are gone"));
                runtime.WaitForFinish();
                return absl::OkStatus();
              }),
              ::testing::ExitedWithCode(kExitStartAgain), "rows are gone");
  EXPECT_TRUE(IsOf(Left(), NN_WORKER, 0));
  EXPECT_EQ(Left().kind(), Ending::DAMAGED) << "its own, whatever the call's error was";
  EXPECT_EQ(Left().text(), "rows are gone");
}

TEST_F(RoleRuntimeTest, AnAnswerThatIsNoMessageExits1) {
  EXPECT_EXIT(RunCase([](RoleRuntime& runtime, FakeCoordinator& coordinator) {
                RETURN_IF_ERROR(runtime.Join());
                coordinator.GarbleHeartbeats();
                while (true) pause();
              }),
              ::testing::ExitedWithCode(kExitFailed), "heartbeat answer is malformed");
  EXPECT_EQ(Left().why(), Ending::MEMBER_FAILED);
  EXPECT_TRUE(IsOf(Left(), NN_WORKER, 0));
}

// Only a refusal by another run or generation is handled differently: then the role asks to be
// started again (role_runtime_test.cc).
TEST_F(RoleRuntimeTest, AnyOtherRefusalOfAHeartbeatExits1) {
  EXPECT_EXIT(RunCase([](RoleRuntime& runtime, FakeCoordinator& coordinator) {
                RETURN_IF_ERROR(runtime.Join());
                coordinator.RefuseHeartbeats(absl::UnimplementedError("no such method"));
                while (true) pause();
              }),
              ::testing::ExitedWithCode(kExitFailed),
              "the coordinator at unix:coordinator refuses nn_worker 0: no such method");
  EXPECT_EQ(Left().why(), Ending::MEMBER_FAILED);
}

// A lost heartbeat is not a refusal, so the role sends the next one as usual.
TEST_F(RoleRuntimeTest, AHeartbeatThatIsLostChangesNothing) {
  EXPECT_EXIT(RunCase([](RoleRuntime& runtime, FakeCoordinator& coordinator) {
                RETURN_IF_ERROR(runtime.Join());
                for (const absl::Status& lost :
                     {absl::UnavailableError("lost"), absl::DeadlineExceededError("late"),
                      absl::CancelledError("the connection was closed")}) {
                  coordinator.RefuseHeartbeats(lost);
                  coordinator.AwaitHeartbeats(1);
                }
                coordinator.RefuseHeartbeats(absl::OkStatus());
                coordinator.AwaitHeartbeats(1);
                return FinishRole(runtime);
              }),
              ::testing::ExitedWithCode(0), "");
}

// The runtime waits for the body of a role to notice the end of the run, but not for ever.
TEST_F(RoleRuntimeTest, ARunThatHasFinishedEndsAProcessThatDoesNotNotice) {
  EXPECT_EXIT(RunCase([](RoleRuntime& runtime, FakeCoordinator& coordinator) {
                RETURN_IF_ERROR(runtime.Join());
                coordinator.SetState(FINISHED);
                while (true) pause();
              }),
              ::testing::ExitedWithCode(0), "exiting without waiting for work that still runs");
}

}  // namespace
}  // namespace satrap
