// What signals do to a role's process.

#include <signal.h>
#include <unistd.h>

#include "common/role/role_fixture.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

TEST_F(RoleRuntimeTest, TheFirstSigtermIsAWishAndTheRoleServesUntilTheRunHasStopped) {
  EXPECT_EXIT(RunCase([](RoleRuntime& runtime, FakeCoordinator& coordinator) {
                const absl::Status joined = runtime.Join();
                if (!joined.ok()) return joined;
                kill(getpid(), SIGTERM);
                coordinator.AwaitHeartbeats(2);
                coordinator.SetState(STOPPED);
                while (true) pause();
              }),
              ::testing::ExitedWithCode(0), "coordinator was asked to stop(.|\n)*has stopped");
}

TEST_F(RoleRuntimeTest, TheSecondSigtermIsTheEnd) {
  EXPECT_EXIT(RunCase([](RoleRuntime& runtime, FakeCoordinator& coordinator) {
                const absl::Status joined = runtime.Join();
                if (!joined.ok()) return joined;
                kill(getpid(), SIGTERM);
                coordinator.AwaitHeartbeats(2);
                kill(getpid(), SIGTERM);
                while (true) pause();
              }),
              ::testing::ExitedWithCode(0), "stopped by Terminated");
}

TEST_F(RoleRuntimeTest, AnInterruptIsTheEndAtOnce) {
  EXPECT_EXIT(RunCase([](RoleRuntime& runtime, FakeCoordinator&) {
                const absl::Status joined = runtime.Join();
                if (!joined.ok()) return joined;
                kill(getpid(), SIGINT);
                while (true) pause();
              }),
              ::testing::ExitedWithCode(0), "stopped by Interrupt");
}

TEST_F(RoleRuntimeTest, ARunThatDoesNotStopInTimeIsNotWaitedFor) {
  EXPECT_EXIT(RunCase(
                  [](RoleRuntime& runtime, FakeCoordinator&) {
                    const absl::Status joined = runtime.Join();
                    if (!joined.ok()) return joined;
                    kill(getpid(), SIGTERM);
                    while (true) pause();
                  },
                  [](FakeCoordinator& coordinator) {
                    JobConfig job;
                    job.set_stop_seconds(0.1);
                    coordinator.SetJob(job);
                  }),
              ::testing::ExitedWithCode(kExitStartAgain), "did not stop within stop_seconds");
}

}  // namespace
}  // namespace satrap
