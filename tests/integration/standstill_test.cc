// Tests that a standstill of the whole machine (a suspended virtual machine, a laptop that was
// closed, a debugger) does not end a run: in its timeouts every process ignores the time during
// which it was itself suspended.

#include <signal.h>

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "tests/integration/run_fixture.h"

namespace satrap {
namespace {

// This time is longer than any silence that is tolerated: 8 s by the coordinator and by members, 30
// s in calls.
constexpr double kStandstillSeconds = 36;

class StandstillTest : public RunFixture {
 protected:
  // The command lines of the launcher and the coordinator name the run's folder; those of the roles
  // name the folder of the run's sockets.
  std::vector<pid_t> ProcessesOfRun() const {
    const std::string sockets = std::filesystem::read_symlink(Path("run/sockets")).string();
    std::set<pid_t> pids;
    for (const std::string& folder : {dir_, sockets}) {
      for (const pid_t pid : ProcessesWith(folder)) pids.insert(pid);
    }
    return {pids.begin(), pids.end()};
  }
  void SignalAll(const std::vector<pid_t>& pids, int signal) {
    for (const pid_t pid : pids) EXPECT_EQ(SendSignal(pid, signal), 0) << pid;
  }
};

TEST_F(StandstillTest, OfAllProcessesForThirtySixSecondsDoesNotEndARun) {
  const Command command =
      StartSatrap({"train", WriteJob(20000, "epochs: 80"), "--run_dir", Path("run")});
  ASSERT_TRUE(WaitUntilTraining(Path("run")))
      << ReadFile(command.err_path) << ReadFile(Path("run/logs/nn_worker_0.log"));
  // The launcher, the coordinator and the roles: 2 PSs, 2 embedding workers, 2 NN workers, a
  // loader.
  const std::vector<pid_t> pids = ProcessesOfRun();
  EXPECT_GE(pids.size(), 9u);
  SignalAll(pids, SIGSTOP);
  const std::string before = ReadFile(Path("run/metrics.jsonl"));
  EXPECT_FALSE(WaitUntil([] { return false; }, kStandstillSeconds));
  EXPECT_EQ(ReadFile(Path("run/metrics.jsonl")), before) << "nobody works meanwhile";
  SignalAll(pids, SIGCONT);
  const CommandEnd end = WaitFor(command, 180);
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_EQ(JsonNumber(ReadFile(Path("run/report.json")), "samples"), 1600000) << end.err;
}

}  // namespace
}  // namespace satrap
