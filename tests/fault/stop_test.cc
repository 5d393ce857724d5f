// Tests runs that are stopped, killed and resumed, or whose processes are suspended:
// docs/consistency.md, "Generations" and "What each failure does".

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "tests/fault/fault_fixture.h"

namespace satrap {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kRecords = 100000;
constexpr double kSecondsToEnd = 120;

// A terminal that only the test uses.
class Terminal {
 public:
  Terminal() : fd_(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)) {
    EXPECT_TRUE(fd_ >= 0 && grantpt(fd_) == 0 && unlockpt(fd_) == 0);
  }
  ~Terminal() { close(fd_); }

  // The command line that runs `command` as the foreground process of this terminal.
  std::vector<std::string> Run(const std::vector<std::string>& command) const {
    // The shell and setsid each exec the next program, so the process keeps its PID.
    std::vector<std::string> all = {"sh", "-c", "exec setsid --ctty \"$@\" < \"$0\"", ptsname(fd_)};
    all.insert(all.end(), command.begin(), command.end());
    return all;
  }
  void PressCtrlC() const { EXPECT_EQ(write(fd_, "\x03", 1), 1); }

 private:
  const int fd_;
};

class StopTest : public FaultFixture {
 protected:
  Command StartOn(const Terminal& terminal, const std::string& job) {
    return StartProgram(terminal.Run({ProgramPath("deploy/satrap_cli"), "--install_dir=.", "train",
                                      job, "--run_dir", RunDir()}));
  }
  // Waits until the command has printed that it takes a last cut.
  bool WaitForLastCut(const Command& run) {
    return WaitUntil(
        [&] { return ReadFile(run.err_path).find("takes a last cut") != std::string::npos; }, 60);
  }
};

TEST_F(StopTest, AStoppedRunTakesALastCutAndResumesFromIt) {
  const Command run = StartRun(WriteCountingJob(kRecords));
  ASSERT_TRUE(WaitForCuts(1)) << ReadFile(run.err_path);
  EXPECT_EQ(Satrap({"stop", RunDir()}).exit_code, 0);
  const CommandEnd stopped = WaitFor(run, 60);
  EXPECT_EQ(stopped.exit_code, 0) << stopped.err;
  EXPECT_THAT(stopped.err, HasSubstr("satrap resume"));
  EXPECT_TRUE(NobodyIsLeft());
  ExpectFinished(Resume(), kRecords);
}

TEST_F(StopTest, CtrlCTakesALastCutToo) {
  const Command run = StartRun(WriteCountingJob(kRecords));
  ASSERT_TRUE(WaitForCuts(1)) << ReadFile(run.err_path);
  const int cuts = Cuts();
  SendSignal(run.pid, SIGINT);
  const CommandEnd stopped = WaitFor(run, 60);
  EXPECT_EQ(stopped.exit_code, 130) << stopped.err;
  EXPECT_GT(Cuts(), cuts);
  ExpectFinished(Resume(), kRecords);
}

TEST_F(StopTest, ASecondCtrlCEndsTheRunAtOnce) {
  const Command run = StartRun(WriteCountingJob(kRecords));
  ASSERT_TRUE(WaitForCuts(1)) << ReadFile(run.err_path);
  // While a rank is suspended, the last cut cannot be taken.
  Signal("nn_worker", 1, SIGSTOP);
  SendSignal(run.pid, SIGINT);
  EXPECT_TRUE(WaitForLastCut(run));
  // A signal that comes again within a second counts as the same one.
  WaitUntil([] { return false; }, 2);
  SendSignal(run.pid, SIGINT);
  const CommandEnd stopped = WaitFor(run, 60);
  EXPECT_EQ(stopped.exit_code, 130) << stopped.err;
  EXPECT_THAT(stopped.err, Not(HasSubstr("sent no heartbeat"))) << "nobody waited for the rank";
  EXPECT_TRUE(NobodyIsLeft());
  ExpectFinished(Resume(), kRecords);
}

TEST_F(StopTest, TheKeysOfCtrlCTakeALastCut) {
  const Terminal terminal;
  const Command run = StartOn(terminal, WriteCountingJob(kRecords));
  ASSERT_TRUE(WaitForCuts(1)) << ReadFile(run.err_path);
  terminal.PressCtrlC();
  const CommandEnd stopped = WaitFor(run, 60);
  EXPECT_EQ(stopped.exit_code, 130) << stopped.err;
  EXPECT_THAT(stopped.err, AllOf(HasSubstr("Interrupt: the run takes a last cut"),
                                 HasSubstr("no work is lost; `satrap resume ")));
  EXPECT_TRUE(NobodyIsLeft());
  ExpectFinished(Resume(), kRecords);
}

TEST_F(StopTest, TheKeysOfCtrlCPressedTwiceEndTheRunAtOnce) {
  const Terminal terminal;
  const Command run = StartOn(terminal, WriteCountingJob(kRecords));
  ASSERT_TRUE(WaitForCuts(1)) << ReadFile(run.err_path);
  Signal("nn_worker", 1, SIGSTOP);
  terminal.PressCtrlC();
  EXPECT_TRUE(WaitForLastCut(run));
  // The second key press needs no pause of a second, because it cannot be mistaken for a signal
  // that a program repeats.
  terminal.PressCtrlC();
  const CommandEnd stopped = WaitFor(run, 60);
  EXPECT_EQ(stopped.exit_code, 130) << stopped.err;
  EXPECT_THAT(stopped.err, Not(HasSubstr("sent no heartbeat"))) << "nobody waited for the rank";
  EXPECT_TRUE(NobodyIsLeft());
}

// Ctrl-C on the terminal reaches the benchmark's process and the process of its training. The
// benchmark then also sends the signal to the training.
TEST_F(StopTest, CtrlCStopsABenchmarkOfCutsAndTheTrainingThatRunsForIt) {
  // The test finds both processes by the name of this link, which is in their command lines. The
  // benchmark chooses the run's folder itself, below its working folder.
  fs::create_directory_symlink(fs::current_path(), Path("install"));
  const Terminal terminal;
  const Command bench = StartProgram(terminal.Run(
      {"env", "-C", dir_, ProgramPath("deploy/satrap_cli"), "--install_dir=" + Path("install"),
       "bench", "cuts", "--rows=10000", "--pairs=1", "--set", "data.synthetic.cycle_batches=64"}));
  const std::string latest = Path("runs/latest");
  ASSERT_TRUE(WaitUntilTraining(latest)) << ReadFile(bench.err_path);
  const std::string run_dir = fs::canonical(latest).string();
  const fs::path sockets = fs::read_symlink(run_dir + "/sockets");
  EXPECT_TRUE(fs::exists(sockets));
  terminal.PressCtrlC();
  const CommandEnd stopped = WaitFor(bench, 40);
  EXPECT_EQ(stopped.exit_code, 130) << stopped.err;
  EXPECT_EQ(stopped.out, "") << "it has measured nothing";
  EXPECT_THAT(stopped.err, AllOf(HasSubstr("Interrupt: the run takes a last cut and stops"),
                                 HasSubstr("no work is lost; `satrap resume ")));
  EXPECT_THAT(stopped.err, EndsWith("\nsatrap: the benchmark's run without cuts was stopped by "
                                    "Interrupt\n"));
  EXPECT_THAT(stopped.err, Not(HasSubstr("measured")));
  EXPECT_TRUE(WaitUntilOver(run_dir, 0));
  EXPECT_TRUE(WaitUntilGone(Path("install"), 0));
  EXPECT_FALSE(fs::exists(sockets));
  // The run that the benchmark has named stays, with its last cut. No other run is left.
  for (const auto& entry : fs::directory_iterator(Path("runs"))) {
    EXPECT_TRUE(entry.is_symlink() || entry.path() == run_dir) << entry.path();
  }
  EXPECT_TRUE(fs::exists(run_dir + "/checkpoints/latest/"));
}

TEST_F(StopTest, ABenchmarkOfCutsTellsThatItsTrainingWasKilled) {
  fs::create_directory_symlink(fs::current_path(), Path("install"));
  const Command bench = StartProgram({"env", "-C", dir_, ProgramPath("deploy/satrap_cli"),
                                      "--install_dir=" + Path("install"), "bench", "cuts",
                                      "--rows=10000", "--pairs=1"});
  ASSERT_TRUE(WaitUntilTraining(Path("runs/latest"))) << ReadFile(bench.err_path);
  const std::string run_dir = fs::canonical(Path("runs/latest")).string();
  for (const pid_t pid : ProcessesWith(Path("install"))) {
    if (ParentOf(pid) == bench.pid) SendSignal(pid, SIGKILL);
  }
  const CommandEnd end = WaitFor(bench, 40);
  EXPECT_EQ(end.exit_code, 1) << end.err;
  EXPECT_THAT(end.err, EndsWith("\nsatrap: the benchmark's run without cuts was killed by signal 9 "
                                "(Killed)\n"));
  EXPECT_TRUE(WaitUntilOver(run_dir, 30));
}

TEST_F(StopTest, AStoppedChaosLeavesNoUndisturbedRunBehind) {
  const std::string job = WriteCountingJob(kRecords);
  const std::string undisturbed = RunDir() + "-undisturbed-1";
  for (const int signal : {SIGTERM, SIGKILL}) {
    const Command chaos = StartSatrap(
        {"chaos", job, "--run_dir", RunDir(), "--undisturbed=1", "--set", "epochs=100"});
    ASSERT_TRUE(WaitUntilTraining(undisturbed)) << ReadFile(chaos.err_path);
    SendSignal(chaos.pid, signal);
    const CommandEnd end = WaitFor(chaos, 40);
    EXPECT_TRUE(WaitUntilOver(undisturbed, 30));
    EXPECT_TRUE(WaitUntilGone("--run_dir=" + undisturbed, 30));
    EXPECT_FALSE(fs::exists(RunDir())) << "the disturbed run did not begin";
    if (signal == SIGTERM) {
      EXPECT_EQ(end.exit_code, 130) << end.err;
      EXPECT_THAT(end.err, AllOf(HasSubstr("Terminated: the run takes a last cut and stops"),
                                 HasSubstr("undisturbed-1 was stopped by Terminated")));
    }
    fs::remove_all(undisturbed);
  }
}

TEST_F(StopTest, ChaosChecksWhatItWritesBeforeItTrains) {
  const std::string job = WriteCountingJob(1000);
  const std::string undisturbed = RunDir() + "-undisturbed-";
  const auto refusal_of = [&](const std::vector<std::string>& more) {
    std::vector<std::string> args = {"chaos", job, "--run_dir", RunDir(), "--undisturbed=2"};
    args.insert(args.end(), more.begin(), more.end());
    const CommandEnd end = Satrap(args);
    EXPECT_EQ(end.exit_code, 1) << end.err;
    EXPECT_FALSE(fs::exists(undisturbed + "1")) << "nothing ran";
    return end.err;
  };
  EXPECT_THAT(refusal_of({"--report", Path("no/report.json")}),
              HasSubstr("no/report.json: No such"));
  fs::create_directories(undisturbed + "2");
  WriteFile("run-undisturbed-2/job.textproto", "name: 'other'");
  EXPECT_THAT(refusal_of({}), HasSubstr("run-undisturbed-2 holds a run already"));
  fs::remove_all(undisturbed + "2");
  fs::create_directories(RunDir());
  WriteFile("run/job.textproto", "name: 'other'");
  EXPECT_THAT(refusal_of({}), HasSubstr("run holds a run already"));
}

TEST_F(StopTest, ARunWhoseLauncherWasKilledResumes) {
  LeaveAKilledRun(WriteCountingJob(kRecords));
  ExpectFinished(Resume(), kRecords);
}

TEST_F(StopTest, ResumeRefusesAChangeOfTheOrderOfSamples) {
  LeaveAKilledRun(WriteCountingJob(kRecords));
  const CommandEnd refused = Resume({"--set", "seed=2", "--set", "global_batch_size=512"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("seed"), HasSubstr("global_batch_size")));
  ExpectFinished(Resume({"--set", "embedding_ps.replicas=3"}), kRecords);
}

TEST_F(StopTest, AFinishedRunIsNotResumed) {
  ExpectFinished(WaitFor(StartRun(WriteCountingJob(20000)), kSecondsToEnd), 20000);
  const CommandEnd again = Resume();
  EXPECT_EQ(again.exit_code, 1);
  EXPECT_THAT(again.err, HasSubstr("finished"));
}

TEST_F(StopTest, AProcessThatStandsStillForFiveSecondsIsWaitedFor) {
  const Command run = StartRun(WriteCountingJob(kRecords));
  ASSERT_TRUE(WaitForCuts(1)) << ReadFile(run.err_path);
  const pid_t pid = RoleProcess(RunDir(), "embedding_ps", 1);
  SendSignal(pid, SIGSTOP);
  WaitUntil([] { return false; }, 5);
  SendSignal(pid, SIGCONT);
  ExpectFinished(WaitFor(run, kSecondsToEnd), kRecords);
  EXPECT_EQ(Generations(), 1);
}

TEST_F(StopTest, AProcessThatStandsStillForLongIsLost) {
  const Command run = StartRun(WriteCountingJob(kRecords));
  ASSERT_TRUE(WaitForCuts(1)) << ReadFile(run.err_path);
  Signal("embedding_ps", 1, SIGSTOP);
  ASSERT_TRUE(WaitForGenerations(2));
  const CommandEnd end = WaitFor(run, kSecondsToEnd);
  ExpectFinished(end, kRecords);
  EXPECT_THAT(end.err, HasSubstr("embedding_ps 1"));
}

}  // namespace
}  // namespace satrap
