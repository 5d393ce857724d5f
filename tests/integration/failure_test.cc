// What can go wrong with a run, and that it ends soon, with one message that names the cause, and
// with no process left.

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "tests/integration/run_fixture.h"

namespace satrap {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr double kSecondsToEnd = 10;

class FailureTest : public RunFixture {
 protected:
  Command StartEndlessRun() {
    const std::string job = WriteJob(20000, "epochs: 100000");
    const Command command = StartSatrap({"train", job, "--run_dir", Path("run")});
    EXPECT_TRUE(WaitUntilTraining(Path("run")))
        << ReadFile(command.err_path) << ReadFile(Path("run/logs/nn_worker_0.log"));
    return command;
  }
  // The process of a role of that run.
  pid_t ProcessOf(const std::string& role, int index) const {
    const std::vector<pid_t> of_run = ProcessesWith(Path("run/job.textproto"));
    for (const pid_t pid : of_run) {
      const std::string line = ReadFile(absl::StrCat("/proc/", pid, "/cmdline"));
      const std::string program = line.substr(0, line.find('\0'));
      const std::string flag = absl::StrCat("--role_index=", index);
      if (program.size() > role.size() &&
          program.compare(program.size() - role.size(), role.size(), role) == 0 &&
          line.find(flag) != std::string::npos) {
        return pid;
      }
    }
    ADD_FAILURE() << "no process of " << role << " " << index;
    return 0;
  }
  bool NobodyIsLeft() {
    return WaitUntil([&] { return ProcessesWith(Path("run/job.textproto")).empty(); },
                     kSecondsToEnd);
  }
};

class KillTest : public FailureTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(KillTest, EndsTheJobWithinTenSecondsAndNamesTheDead) {
  const std::string role = GetParam();
  const int index = role == "nn_worker" || role == "embedding_ps" ? 1 : 0;
  const Command command = StartEndlessRun();
  const pid_t pid = ProcessOf(role, index);
  ASSERT_GT(pid, 0);
  kill(pid, SIGKILL);
  const CommandEnd end = WaitFor(command, kSecondsToEnd);
  EXPECT_EQ(end.exit_code, 1);
  const std::string name = role == "coordinator" ? role : absl::StrCat(role, " ", index);
  EXPECT_THAT(
      end.err,
      AllOf(HasSubstr(absl::StrCat("the job failed: ", name, " was killed by signal 9 (Killed)")),
            HasSubstr(absl::StrCat("logs/", role, "_", index, ".log"))));
  EXPECT_TRUE(NobodyIsLeft());
}

INSTANTIATE_TEST_SUITE_P(EachRole, KillTest,
                         ::testing::Values("coordinator", "data_loader", "embedding_worker",
                                           "embedding_ps", "nn_worker"),
                         [](const auto& info) { return std::string(info.param); });

class TerminatedRoleTest : public FailureTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(TerminatedRoleTest, EndsTheJobAndIsNamed) {
  const std::string role = GetParam();
  const Command command = StartEndlessRun();
  const pid_t pid = ProcessOf(role, 0);
  ASSERT_GT(pid, 0);
  kill(pid, SIGTERM);
  const CommandEnd end = WaitFor(command, kSecondsToEnd);
  EXPECT_EQ(end.exit_code, 1);
  const std::string name = role == "coordinator" ? role : role + " 0";
  EXPECT_THAT(end.err,
              HasSubstr(absl::StrCat("the job failed: ", name, " exited with code 0 before")));
  EXPECT_TRUE(NobodyIsLeft());
  EXPECT_THAT(ReadFile(Path("run/failure.txt")), HasSubstr(name));
  EXPECT_THAT(Satrap({"status", Path("run")}).out,
              AllOf(HasSubstr("has failed: "), HasSubstr(name)));
}

INSTANTIATE_TEST_SUITE_P(SomeRoles, TerminatedRoleTest,
                         ::testing::Values("coordinator", "data_loader", "embedding_ps",
                                           "nn_worker"),
                         [](const auto& info) { return std::string(info.param); });

TEST_F(FailureTest, ASilentCoordinatorIsNamed) {
  const Command command = StartEndlessRun();
  const pid_t pid = ProcessOf("coordinator", 0);
  ASSERT_GT(pid, 0);
  kill(pid, SIGSTOP);
  const CommandEnd end = WaitFor(command, 2 * kSecondsToEnd);
  EXPECT_EQ(end.exit_code, 1);
  EXPECT_THAT(end.err, AllOf(HasSubstr("the job failed: coordinator (process "),
                             HasSubstr("does not answer")));
  EXPECT_TRUE(NobodyIsLeft());
}

TEST_F(FailureTest, AModelThatDoesNotFitIsRefusedBeforeAnythingStarts) {
  const std::string job = WriteJob(1000);
  const CommandEnd inputs =
      Satrap({"validate", job, "--set", "model.layers[0].inputs=nosuch.linear"});
  EXPECT_EQ(inputs.exit_code, 1);
  EXPECT_THAT(inputs.err, AllOf(HasSubstr("linear"), HasSubstr("nosuch.linear")));
  const CommandEnd units = Satrap(
      {"train", job, "--set", "model.layers[name=deep].mlp.units=-5", "--run_dir", Path("run")});
  EXPECT_EQ(units.exit_code, 1);
  EXPECT_THAT(units.err, AllOf(HasSubstr("deep"), HasSubstr("-5")));
  EXPECT_NE(access(Path("run").c_str(), F_OK), 0) << "no run folder was made";
}

TEST_F(FailureTest, AValueThatIsNoneIsOneMessage) {
  const CommandEnd end = Satrap({"validate", WriteJob(1000), "--set", "seed=seven"});
  EXPECT_EQ(end.exit_code, 1);
  EXPECT_EQ(end.err.find("libprotobuf"), std::string::npos) << end.err;
}

TEST_F(FailureTest, NobodyOutlivesAKilledLauncher) {
  const Command command = StartEndlessRun();
  kill(command.pid, SIGKILL);
  EXPECT_EQ(WaitFor(command, kSecondsToEnd).exit_code, -1);
  EXPECT_TRUE(NobodyIsLeft());
}

TEST_F(FailureTest, TerminationStopsEverything) {
  const Command command = StartEndlessRun();
  kill(command.pid, SIGTERM);
  const CommandEnd end = WaitFor(command, kSecondsToEnd);
  EXPECT_EQ(end.exit_code, 130);
  EXPECT_THAT(end.err, HasSubstr("stopped by Terminated"));
  EXPECT_TRUE(NobodyIsLeft());
}

TEST_F(FailureTest, AWrongJobFileIsRefusedWithLineAndColumn) {
  const std::string job = WriteFile("wrong.textproto", "name: \"x\"\nepocs: 3\n");
  const CommandEnd end = Satrap({"train", job});
  EXPECT_EQ(end.exit_code, 1);
  EXPECT_THAT(end.err, AllOf(HasSubstr("wrong.textproto:2"), HasSubstr("epocs")));
}

TEST_F(FailureTest, AJobThatDoesNotExistIsRefused) {
  const CommandEnd end = Satrap({"train", "dem"});
  EXPECT_EQ(end.exit_code, 1);
  EXPECT_THAT(end.err, HasSubstr("did you mean demo?"));
}

TEST_F(FailureTest, AMissingDataFileIsNamedBeforeAnythingStarts) {
  const CommandEnd without_root = Satrap({"train", "adult_fm"});
  EXPECT_EQ(without_root.exit_code, 1);
  EXPECT_THAT(without_root.err, HasSubstr("--set data_root=DIR"));
  const CommandEnd end =
      Satrap({"train", "adult_fm", "--set", "data_root=" + dir_, "--run_dir", Path("run")});
  EXPECT_EQ(end.exit_code, 1);
  EXPECT_THAT(end.err, AllOf(HasSubstr("adult.data"), HasSubstr("adult.test")));
  EXPECT_NE(access(Path("run").c_str(), F_OK), 0) << "no run folder was made";
}

TEST_F(FailureTest, ARunFolderThatCannotBeMadeIsNamed) {
  const std::string job = WriteJob(1000);
  WriteFile("occupied", "");
  const CommandEnd end = Satrap({"train", job, "--run_dir", Path("occupied/run")});
  EXPECT_EQ(end.exit_code, 1);
  EXPECT_THAT(end.err, HasSubstr("occupied/run"));
}

// A coordinator of a resolved job, without a launcher.
class LooseRoleTest : public FailureTest {
 protected:
  std::string ResolvedJob(const std::string& name, int64_t train_samples) {
    const CommandEnd end = Satrap({"validate", WriteJob(train_samples)});
    EXPECT_EQ(end.exit_code, 0) << end.err;
    return WriteFile(name, end.out);
  }
  Command StartCoordinator(const std::string& job, const std::string& address) {
    return Start("deploy/coordinator/coordinator", {"--config=" + job, "--listen=" + address});
  }
  bool Listens(const Command& coordinator) {
    return WaitUntil(
        [&] {
          return ReadFile(coordinator.err_path).find("waiting for members") != std::string::npos;
        },
        10);
  }
};

TEST_F(LooseRoleTest, ASocketOrPortInUseIsRefused) {
  const std::string job = ResolvedJob("job", 1000);
  for (const std::string& address : {"unix:" + Path("socket"), std::string("127.0.0.1:0")}) {
    const Command first = StartCoordinator(job, address);
    ASSERT_TRUE(Listens(first)) << ReadFile(first.err_path);
    // The port that the system chose, or the same socket.
    const std::string log = ReadFile(first.err_path);
    const size_t at = log.find("address=") + std::string("address=").size();
    const std::string taken = log.substr(at, log.find_first_of(" \n", at) - at);
    const CommandEnd second = WaitFor(StartCoordinator(job, taken), 10);
    EXPECT_EQ(second.exit_code, 1) << taken;
    EXPECT_THAT(second.err, HasSubstr(taken.substr(taken.find(':') + 1)));
    kill(first.pid, SIGTERM);
    EXPECT_EQ(WaitFor(first, 10).exit_code, 0);
  }
}

TEST_F(LooseRoleTest, ARoleOfAnotherJobIsRefusedAndTheRunGoesOn) {
  const std::string address = "unix:" + Path("coordinator");
  const Command coordinator = StartCoordinator(ResolvedJob("job_a", 1000), address);
  ASSERT_TRUE(Listens(coordinator)) << ReadFile(coordinator.err_path);
  const std::string other = ResolvedJob("job_b", 2000);
  const CommandEnd stranger = WaitFor(
      Start("data_loader/data_loader", {"--config=" + other, "--coordinator=" + address}), 20);
  EXPECT_EQ(stranger.exit_code, 1);
  EXPECT_THAT(stranger.err, HasSubstr("data_loader 0 belongs to another job"));
  EXPECT_EQ(kill(coordinator.pid, 0), 0);
  EXPECT_EQ(ReadFile(coordinator.err_path).find("FAILED"), std::string::npos);
  kill(coordinator.pid, SIGTERM);
  EXPECT_EQ(WaitFor(coordinator, 10).exit_code, 0);
}

}  // namespace
}  // namespace satrap
