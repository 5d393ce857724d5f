// Tests how signals affect a role's process.

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/file/file_system.h"
#include "common/role/testing/role_fixture.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

TEST_F(RoleRuntimeTest, TheFirstSigtermIsAWishAndTheRoleServesUntilTheRunHasStopped) {
  EXPECT_EXIT(RunCase([](RoleRuntime& runtime, FakeCoordinator& coordinator) {
                RETURN_IF_ERROR(runtime.Join());
                kill(getpid(), SIGTERM);
                coordinator.AwaitHeartbeats(2);
                coordinator.SetState(STOPPED);
                while (true) pause();
              }),
              ::testing::ExitedWithCode(0), "coordinator was asked to stop(.|\n)*has stopped");
}

TEST_F(RoleRuntimeTest, WhereAProcessMayLeaveItsMachineItsHeartbeatsSaySoAndNobodyIsAskedToStop) {
  EXPECT_EXIT(RunCase(
                  [](RoleRuntime& runtime, FakeCoordinator& coordinator) {
                    RETURN_IF_ERROR(runtime.Join());
                    kill(getpid(), SIGTERM);
                    CHECK(coordinator.AwaitLeaving() == 0);
                    coordinator.AwaitHeartbeats(2);  // it serves on
                    coordinator.SetState(RESTARTING);
                    while (true) pause();
                  },
                  [](FakeCoordinator& coordinator) { coordinator.LetLeave(); }),
              ::testing::ExitedWithCode(kExitEchoStartAgain),
              "leaving the run(.|\n)*this generation is over");
}

TEST_F(RoleRuntimeTest, AGenerationThatDoesNotEndInTimeIsLeftAllTheSame) {
  EXPECT_EXIT(RunCase(
                  [](RoleRuntime& runtime, FakeCoordinator&) {
                    RETURN_IF_ERROR(runtime.Join());
                    kill(getpid(), SIGTERM);
                    while (true) pause();
                  },
                  [](FakeCoordinator& coordinator) {
                    JobConfig job;
                    job.set_stop_seconds(0.1);
                    coordinator.SetJob(job);
                    coordinator.LetLeave();
                  }),
              ::testing::ExitedWithCode(kExitStartAgain),
              "generation did not end within stop_seconds");
  EXPECT_EQ(Left().why(), Ending::MOVED);
}

TEST_F(RoleRuntimeTest, TheSecondSigtermIsTheEnd) {
  EXPECT_EXIT(RunCase([](RoleRuntime& runtime, FakeCoordinator& coordinator) {
                RETURN_IF_ERROR(runtime.Join());
                kill(getpid(), SIGTERM);
                coordinator.AwaitHeartbeats(2);
                kill(getpid(), SIGTERM);
                while (true) pause();
              }),
              ::testing::ExitedWithCode(0), "stopped by Terminated");
}

TEST_F(RoleRuntimeTest, AnInterruptIsTheEndAtOnce) {
  EXPECT_EXIT(RunCase([](RoleRuntime& runtime, FakeCoordinator&) {
                RETURN_IF_ERROR(runtime.Join());
                kill(getpid(), SIGINT);
                while (true) pause();
              }),
              ::testing::ExitedWithCode(0), "stopped by Interrupt");
}

TEST_F(RoleRuntimeTest, ARunThatDoesNotStopInTimeIsNotWaitedFor) {
  EXPECT_EXIT(RunCase(
                  [](RoleRuntime& runtime, FakeCoordinator&) {
                    RETURN_IF_ERROR(runtime.Join());
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

// A quota or `ulimit -f` sets such a limit. The one here applies only to the process of the death
// test.
TEST_F(RoleRuntimeTest, AFileAtItsSizeLimitIsAFailedWriteAndNotADeath) {
  EXPECT_EXIT(RunCase([](RoleRuntime& runtime, FakeCoordinator&) {
                const rlimit limit = {4096, RLIM_INFINITY};
                CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
                const std::string path = ::testing::TempDir() + "role_signals_test_file";
                auto file = DiskFileSystem()->Create(path);
                CHECK(file.ok()) << file.status().ToString();
                absl::Status status = (*file)->Append(std::string(100000, 'x'));
                if (status.ok()) status = (*file)->Sync();
                CHECK(absl::IsResourceExhausted(status)) << status.ToString();
                DiskFileSystem()->Remove(path).IgnoreError();
                runtime.ExitUnlessOk(absl::DataLossError("alive"));
                return absl::OkStatus();
              }),
              ::testing::ExitedWithCode(1), "alive");
}

}  // namespace
}  // namespace satrap
