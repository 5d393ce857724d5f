// Tests runs that are not restarted (max_restarts: 0).

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>

#include "common/file/file_history.h"
#include "deploy/launcher/testing/launcher_fixture.h"
#include "gmock/gmock.h"

namespace satrap {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using Clock = std::chrono::steady_clock;

TEST_F(LauncherTest, WithoutRestartsADeadProcessEndsTheJobAndIsNamed) {
  for (const std::string process : {"nn_worker1", "embedding_ps0", "coordinator0"}) {
    if (process != "nn_worker1") {
      TearDown();
      SetUp();
    }
    const auto start = Clock::now();
    const RunEnd end = Run([&] { kill(pids_[process], SIGKILL); });
    EXPECT_LT(Clock::now() - start, std::chrono::seconds(10));
    EXPECT_EQ(end.kind, RunEnd::FAILED);
    EXPECT_THAT(end.message, HasSubstr("was killed by signal 9 (Killed)"));
    const std::string name =
        process == "nn_worker1" ? "nn_worker 1" : process.substr(0, process.size() - 1);
    EXPECT_THAT(end.message, HasSubstr(name));
    EXPECT_THAT(end.message, HasSubstr("/logs/"));
    EXPECT_THAT(messages_, SizeIs(0));
    ExpectNobodyIsLeft();
  }
}

TEST_F(LauncherTest, AFailureIsToldWithTheLastErrorOfTheLog) {
  SetProgram("data_loader", "sleep 1; echo 'T error data_loader/0 no such file day_3'; exit 1");
  const RunEnd end = Run([] {});
  EXPECT_EQ(end.kind, RunEnd::FAILED);
  EXPECT_THAT(end.message, HasSubstr("data_loader 0 exited with code 1"));
  EXPECT_THAT(end.message, HasSubstr("no such file day_3"));
  ExpectNobodyIsLeft();
}

TEST_F(LauncherTest, AProcessThatEndsWellBeforeTheRunIsNamed) {
  SetProgram("embedding_worker", "sleep 1; exit 0");
  const RunEnd end = Run([] {});
  EXPECT_EQ(end.kind, RunEnd::FAILED);
  EXPECT_THAT(end.message, HasSubstr("embedding_worker 0 exited with code 0 before the run was"));
  ExpectNobodyIsLeft();
}

TEST_F(LauncherTest, OfTwoThatEndTheFirstIsNamed) {
  SetProgram("nn_worker", "sleep 1; exit 1");
  SetProgram("embedding_ps", "sleep 0.8; exit 0");
  const RunEnd end = Run([] {});
  EXPECT_THAT(end.message, HasSubstr("embedding_ps 0 exited with code 0"));
}

TEST_F(LauncherTest, ACoordinatorThatLivesAndDoesNotAnswerIsNamed) {
  SetProgram("nn_worker",
             "sleep 1; echo 'T error nn_worker/0 nobody answers'; echo \"why: COORDINATOR_SILENT "
             "origin { role: NN_WORKER index: $index }\" > $ending; exit 75");
  const RunEnd end = Run([] {});
  EXPECT_THAT(end.message, HasSubstr("coordinator (process "));
  EXPECT_THAT(end.message, HasSubstr("does not answer"));
  EXPECT_THAT(end.message, HasSubstr(" says: T error nn_worker/0 nobody answers"));
  ExpectNobodyIsLeft();
}

TEST_F(LauncherTest, SignalsAreAsBeforeOnceTheLauncherIsGone) {
  sigset_t before;
  ASSERT_EQ(sigprocmask(SIG_BLOCK, nullptr, &before), 0);
  Run([] { kill(getpid(), SIGTERM); });
  sigset_t after;
  ASSERT_EQ(sigprocmask(SIG_BLOCK, nullptr, &after), 0);
  for (const int signal : {SIGINT, SIGTERM, SIGCHLD}) {
    EXPECT_EQ(sigismember(&after, signal), sigismember(&before, signal)) << signal;
  }
}

TEST_F(LauncherTest, WhoDoesNotGoIsKilled) {
  SetProgram("embedding_worker", "trap '' TERM\nwhile true; do sleep 1; done");
  const RunEnd end = Run([&] { kill(pids_["embedding_ps0"], SIGKILL); });
  EXPECT_THAT(end.message, HasSubstr("embedding_ps 0"));
  ExpectNobodyIsLeft();
}

TEST_F(LauncherTest, ASignalEndsARunThatTakesNoCutAtOnce) {
  for (const auto& [signal, name] :
       {std::pair<int, const char*>{SIGINT, "Interrupt"}, {SIGHUP, "Hangup"}, {SIGQUIT, "Quit"}}) {
    if (signal != SIGINT) {
      TearDown();
      SetUp();
    }
    const auto start = Clock::now();
    const RunEnd end = Run([signal = signal] { kill(getpid(), signal); });
    EXPECT_LT(Clock::now() - start, std::chrono::seconds(10)) << "long before stop_seconds";
    EXPECT_EQ(end.kind, RunEnd::INTERRUPTED) << name;
    EXPECT_EQ(end.message, name);
    EXPECT_EQ(end.outlook, "") << "nothing began that could go on";
    ExpectNobodyIsLeft();
  }
}

// For example, a program started by nohup ignores SIGHUP.
TEST_F(LauncherTest, AHangupThatIsIgnoredStaysIgnored) {
  const sighandler_t before = std::signal(SIGHUP, SIG_IGN);
  const std::string hung_up = dir_ + "/hung_up";
  ASSERT_EQ(mkfifo(hung_up.c_str(), 0600), 0);
  SetProgram("data_loader", "read line < " + hung_up + "; exit 3");
  const RunEnd end = Run([&hung_up] {
    kill(getpid(), SIGHUP);
    std::ofstream(hung_up) << "now\n";
  });
  std::signal(SIGHUP, before);
  EXPECT_EQ(end.kind, RunEnd::FAILED);
  EXPECT_THAT(end.message, HasSubstr("data_loader 0 exited with code 3"));
}

// This process cannot write another byte to any file, as on a full disk.
TEST_F(LauncherTest, ALauncherThatCannotWriteRestartsItsRun) {
  job_.set_max_restarts(1);
  const sighandler_t before = std::signal(SIGXFSZ, SIG_IGN);
  rlimit limit;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
  const rlimit none = {0, limit.rlim_max};
  SetProgram("data_loader", "[ $life = 1 ] && exec sleep 60; exit 4");
  AppendGeneration(1);
  const RunEnd end = Run([&] {
    // Scale the run at the same time, so that the job's file would change. (The entry has the form
    // that an older build wrote.)
    AppendToLog("generation { generation: 2 cause: 'scale' job { name: 'new' max_restarts: 1 } }");
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &none), 0);
    kill(pids_["embedding_ps0"], SIGKILL);
  });
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  std::signal(SIGXFSZ, before);
  EXPECT_THAT(messages_, SizeIs(1)) << "it was restarted";
  EXPECT_THAT(end.message, HasSubstr("data_loader 0 exited with code 4"));
  EXPECT_THAT(end.warnings,
              ElementsAre(HasSubstr("job.textproto: File too large; it shows an older job")));
}

// If the run were started, the coordinator would read the old job from the file instead of the new
// one.
TEST_F(LauncherTest, AResumedJobThatCannotBeWrittenIsNotStarted) {
  AppendGeneration(1);
  ASSERT_TRUE(WriteFileAtomically(folder_->JobPath(), "name: 'old'\n").ok());
  LaunchOptions options;
  options.next_job = true;
  const sighandler_t before = std::signal(SIGXFSZ, SIG_IGN);
  rlimit limit;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
  const rlimit none = {0, limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &none), 0);
  const auto launcher = Launcher::Start(job_, *folder_, dir_ + "/bin", options);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  std::signal(SIGXFSZ, before);
  EXPECT_EQ(launcher.status().code(), absl::StatusCode::kResourceExhausted) << launcher.status();
  EXPECT_THAT(launcher.status().message(), HasSubstr("job.textproto: File too large"));
}

// The PS keeps its log open, so the launcher copies the log and empties it; the PS continues in the
// emptied file.
TEST_F(LauncherTest, ALogThatHasBecomeTooLongIsCutWhileTheRunGoesOn) {
  ScriptCoordinator("state: RUNNING");
  const std::string log = dir_ + "/run/logs/embedding_ps_0.log";
  std::ofstream(log) << "begins";
  fs::resize_file(log, FileLimits().bytes + 1);
  const RunEnd end = Run([] {}, {}, [&](const StatusAnswer&) { return !fs::exists(log + ".1"); });
  EXPECT_EQ(end.kind, RunEnd::DISMISSED) << end.message;
  EXPECT_GT(fs::file_size(log + ".1"), static_cast<uintmax_t>(FileLimits().bytes));
  EXPECT_FALSE(fs::exists(dir_ + "/run/logs/nn_worker_0.log.1")) << "it is not too long";
}

TEST_F(LauncherTest, AMissingProgramLeavesNothingRunning) {
  fs::remove_all(dir_ + "/bin/nn_worker");
  const auto launcher = Launcher::Start(job_, *folder_, dir_ + "/bin");
  EXPECT_EQ(launcher.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(launcher.status().message(), HasSubstr("nn_worker/nn_worker"));
}

TEST_F(LauncherTest, ForCardsTheirProgramRunsWithOneForEachRank) {
  job_.mutable_nn_worker()->set_device(NnWorkerConfig::CUDA);
  fs::rename(dir_ + "/bin/nn_worker/nn_worker", dir_ + "/bin/nn_worker/nn_worker_cuda");
  Run([] { kill(getpid(), SIGTERM); });
  EXPECT_THAT(ArgsOf("nn_worker0"), HasSubstr("--card=0"));
  EXPECT_THAT(ArgsOf("nn_worker1"), HasSubstr("--card=1"));
  EXPECT_THAT(ArgsOf("embedding_ps0"), Not(HasSubstr("--card")));
}

TEST_F(LauncherTest, WithoutTheProgramForCardsNothingIsStarted) {
  job_.mutable_nn_worker()->set_device(NnWorkerConfig::CUDA);
  const auto launcher = Launcher::Start(job_, *folder_, dir_ + "/bin");
  EXPECT_EQ(launcher.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(
      launcher.status().message(),
      AllOf(HasSubstr("cannot train on a GPU: "), HasSubstr("has no nn_worker/nn_worker_cuda"),
            HasSubstr("run ./setup cuda, and build it again")));
  EXPECT_THAT(launcher.status().message(), Not(HasSubstr("on the CPU")));
  EXPECT_FALSE(fs::exists(dir_ + "/coordinator0.args"));
  // For an action that only scores a model, the message also suggests the CPU.
  job_.set_action(JobConfig::EVALUATE);
  EXPECT_THAT(Launcher::Start(job_, *folder_, dir_ + "/bin").status().message(),
              HasSubstr("build it again; or score on the CPU: --set nn_worker.device=CPU"));
}

}  // namespace
}  // namespace satrap
