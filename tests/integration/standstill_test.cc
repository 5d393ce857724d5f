// A standstill of the whole machine (a suspended virtual machine, a laptop that was closed, a
// debugger) does not end a run: every process discounts the time in which it stood still itself.

#include <signal.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/integration/run_fixture.h"

namespace satrap {
namespace {

// Longer than any silence that is put up with: 8 s of the coordinator and of members, 30 s of
// calls.
constexpr double kStandstillSeconds = 36;

class StandstillTest : public RunFixture {
 protected:
  void SignalAll(const std::vector<pid_t>& pids, int signal) {
    for (const pid_t pid : pids) EXPECT_EQ(kill(pid, signal), 0) << pid;
  }
};

TEST_F(StandstillTest, OfAllProcessesForThirtySixSecondsDoesNotEndARun) {
  const Command command =
      StartSatrap({"train", WriteJob(20000, "epochs: 40"), "--run_dir", Path("run")});
  ASSERT_TRUE(WaitUntilTraining(Path("run")))
      << ReadFile(command.err_path) << ReadFile(Path("run/logs/nn_worker_0.log"));
  // The launcher and the process that starts the others; the coordinator and the roles: 2 PSs, 2
  // embedding workers, 2 NN workers, a loader.
  std::vector<pid_t> pids = RoleProcesses(Path("run"));
  EXPECT_EQ(pids.size(), 8u);
  for (const pid_t pid : ProcessesWith(Path("run"))) {
    if (std::find(pids.begin(), pids.end(), pid) == pids.end()) pids.push_back(pid);
  }
  EXPECT_EQ(pids.size(), 10u);
  SignalAll(pids, SIGSTOP);
  const std::string before = ReadFile(Path("run/metrics.jsonl"));
  EXPECT_FALSE(WaitUntil([] { return false; }, kStandstillSeconds));
  EXPECT_EQ(ReadFile(Path("run/metrics.jsonl")), before) << "nobody works meanwhile";
  SignalAll(pids, SIGCONT);
  const CommandEnd end = WaitFor(command, 180);
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_EQ(JsonNumber(ReadFile(Path("run/report.json")), "samples"), 800000) << end.err;
}

}  // namespace
}  // namespace satrap
