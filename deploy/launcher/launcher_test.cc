// The launcher with shell scripts as its programs: they sleep, fail, or ignore SIGTERM. Where a
// test needs a coordinator that answers, it is a scripted one (scripted_coordinator.cc), and the
// test writes the run's log.

#include "deploy/launcher/launcher.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "common/checkpoint/run_log.h"
#include "common/config/text_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using Clock = std::chrono::steady_clock;

constexpr char kSleep[] = "exec sleep 60";

class LauncherTest : public ::testing::Test {
 protected:
  void SetUp() override {
    dir_ = ::testing::TempDir() + "launcher_test.XXXXXX";
    ASSERT_NE(mkdtemp(dir_.data()), nullptr);
    for (const char* role :
         {"deploy/coordinator", "embedding_ps", "embedding_worker", "data_loader", "nn_worker"}) {
      SetProgram(role, kSleep);
    }
    auto folder = RunFolder::CreateAt(dir_ + "/run");
    ASSERT_TRUE(folder.ok()) << folder.status();
    folder_ = *std::move(folder);
    job_.set_name("scripts");
    job_.mutable_nn_worker()->set_replicas(2);
    job_.set_max_restarts(0);
  }
  void TearDown() override {
    folder_.reset();
    fs::remove_all(dir_);
  }

  // Sets the script that the processes of a role run. Each first appends its flags to the test's
  // file NAME.args, and writes its pid into NAME.pid; $life says how many of them have begun.
  void SetProgram(const std::string& role, const std::string& script) {
    const std::string name = fs::path(role).filename();
    fs::create_directories(dir_ + "/bin/" + role);
    const std::string path = dir_ + "/bin/" + role + "/" + name;
    const std::string own = dir_ + "/" + name + "$index";
    std::ofstream(path + ".new") << "#!/bin/sh\nindex=0\nfor arg; do case $arg in --role_index=*) "
                                    "index=${arg#*=};; esac; done\necho \"$@\" >> "
                                 << own << ".args\nlife=$(cat " << own
                                 << ".args | wc -l)\necho $$ > " << own << ".pid\n"
                                 << script << "\n";
    fs::permissions(path + ".new", fs::perms::owner_all);
    fs::rename(path + ".new", path);
  }
  // A coordinator that answers Status with what SetStatus wrote.
  void ScriptCoordinator(const std::string& status) {
    SetStatus(status);
    SetProgram("deploy/coordinator", "exec " + fs::current_path().string() +
                                         "/deploy/launcher/scripted_coordinator \"$@\"");
  }
  void SetStatus(const std::string& status, const std::string& name = "status") {
    std::ofstream(dir_ + "/status.new") << status;
    fs::rename(dir_ + "/status.new", dir_ + "/run/" + name + ".textproto");
  }
  void AppendToLog(const std::string& entry_text) {
    auto log = RunLog::Open(dir_ + "/run", DiskFileSystem());
    ASSERT_TRUE(log.ok()) << log.status();
    RunLogEntry entry;
    const absl::Status parsed = ParseText(entry_text, "entry", &entry);
    ASSERT_TRUE(parsed.ok()) << parsed;
    ASSERT_TRUE(log->Append(entry).ok());
  }
  // A generation with the test's job.
  void AppendGeneration(uint64_t number) {
    AppendToLog("generation { generation: " + std::to_string(number) + " job { " +
                job_.ShortDebugString() + " } }");
  }
  static std::string ContentOf(const std::string& path) {
    std::ifstream file(path);
    return std::string((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  }
  std::string ArgsOf(const std::string& process) const {
    return ContentOf(dir_ + "/" + process + ".args");
  }
  pid_t PidOf(const std::string& process) const {
    pid_t pid = 0;
    while (pid == 0) std::ifstream(dir_ + "/" + process + ".pid") >> pid;
    return pid;
  }
  // Starts, does `then` once all processes run, and waits for the end.
  RunEnd Run(
      const std::function<void()>& then, const LaunchOptions& options = {},
      const std::function<bool(const StatusAnswer&)>& on_status = [](const StatusAnswer&) {
        return true;
      }) {
    auto launcher = Launcher::Start(job_, *folder_, dir_ + "/bin", options);
    EXPECT_TRUE(launcher.ok()) << launcher.status();
    if (!launcher.ok()) return RunEnd();
    launcher_ = launcher->get();
    for (const char* process : {"coordinator0", "embedding_ps0", "embedding_worker0",
                                "data_loader0", "nn_worker0", "nn_worker1"}) {
      pids_[process] = PidOf(process);
    }
    then();
    return (*launcher)->Wait(on_status, [this](const std::string& message) {
      messages_.push_back(message);
      if (on_message_ != nullptr) on_message_();
    });
  }
  // The first processes and those that were started last.
  void ExpectNobodyIsLeft() const {
    for (const auto& [name, pid] : pids_) {
      EXPECT_NE(kill(pid, 0), 0) << name << " still runs";
      EXPECT_NE(kill(PidOf(name), 0), 0) << name << " still runs";
    }
  }

  std::string dir_;
  std::unique_ptr<RunFolder> folder_;
  JobConfig job_;
  std::map<std::string, pid_t> pids_;
  std::vector<std::string> messages_;
  std::function<void()> on_message_;
  Launcher* launcher_ = nullptr;  // during Run
};

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
             "sleep 1; echo 'T error nn_worker/0 the coordinator at unix:c has not answered for 8 "
             "s'; exit 75");
  const RunEnd end = Run([] {});
  EXPECT_THAT(end.message, HasSubstr("coordinator (process "));
  EXPECT_THAT(end.message, HasSubstr("does not answer"));
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
    const RunEnd end = Run([signal = signal] { kill(getpid(), signal); });
    EXPECT_EQ(end.kind, RunEnd::INTERRUPTED) << name;
    EXPECT_EQ(end.message, name);
    EXPECT_EQ(end.outlook, "") << "nothing began that could go on";
    ExpectNobodyIsLeft();
  }
}

// As under nohup.
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

TEST_F(LauncherTest, ASignalAfterTheEndIsKept) {
  SetProgram("data_loader", "exit 3");
  auto launcher = Launcher::Start(job_, *folder_, dir_ + "/bin");
  ASSERT_TRUE(launcher.ok()) << launcher.status();
  (*launcher)->Wait([](const StatusAnswer&) { return true; }, [](const std::string&) {});
  EXPECT_EQ((*launcher)->LateSignal(), "");
  kill(getpid(), SIGINT);
  EXPECT_EQ((*launcher)->LateSignal(), "Interrupt");
}

TEST_F(LauncherTest, AMissingProgramLeavesNothingRunning) {
  fs::remove_all(dir_ + "/bin/nn_worker");
  const auto launcher = Launcher::Start(job_, *folder_, dir_ + "/bin");
  EXPECT_EQ(launcher.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(launcher.status().message(), HasSubstr("nn_worker/nn_worker"));
}

// From here on runs are restarted.

TEST_F(LauncherTest, EachDeathIsOneMessageAndOneRestartUntilThereAreTooMany) {
  job_.set_max_restarts(2);
  SetProgram("data_loader", "sleep 0.3; exit 3");
  const auto start = Clock::now();
  const RunEnd end = Run([&] { kill(pids_["embedding_ps0"], SIGKILL); });
  EXPECT_EQ(end.kind, RunEnd::FAILED);
  ASSERT_THAT(messages_, SizeIs(2));
  EXPECT_THAT(messages_[0], AllOf(HasSubstr("embedding_ps 0 was killed by signal 9 (Killed)"),
                                  HasSubstr("\n  generation 1 goes on from the beginning; no work "
                                            "is lost")));
  EXPECT_THAT(messages_[1], AllOf(HasSubstr("data_loader 0 exited with code 3"),
                                  HasSubstr("\n  in 1 s generation ")));
  EXPECT_GE(Clock::now() - start, std::chrono::milliseconds(1000)) << "pauses of 0 and 1 s";
  EXPECT_THAT(end.message, AllOf(HasSubstr("data_loader 0 exited with code 3"),
                                 HasSubstr("restarted 2 times without a cut between")));
  for (const auto& [process, pid] : pids_) {
    const std::string args = ArgsOf(process);
    EXPECT_EQ(std::count(args.begin(), args.end(), '\n'), 3) << process;
  }
  const std::string args = ArgsOf("coordinator0");
  EXPECT_THAT(args, AllOf(HasSubstr("--config=" + dir_ + "/run/job.textproto --listen=unix:"),
                          HasSubstr("--cause=embedding_ps 0 was killed by signal 9 (Killed)"),
                          HasSubstr("--cause=data_loader 0 exited with code 3"),
                          Not(HasSubstr("--next_job"))));
  EXPECT_THAT(ArgsOf("nn_worker1"),
              AllOf(HasSubstr("--role_index=1 --coordinator=unix:"), Not(HasSubstr("--config"))));
  const std::string log = ContentOf(dir_ + "/run/logs/data_loader_0.log");
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 3) << "each life is marked: " << log;
  ExpectNobodyIsLeft();
}

TEST_F(LauncherTest, TheExitOfAnOldGenerationIsNotThatOfTheNext) {
  job_.set_max_restarts(1);
  // All but the killed one end in the same moment, by the SIGKILL of the launcher.
  SetProgram("data_loader", "[ $life = 1 ] && exec sleep 60; sleep 1; exit 4");
  const RunEnd end = Run([&] { kill(pids_["nn_worker1"], SIGKILL); });
  ASSERT_THAT(messages_, SizeIs(1));
  EXPECT_THAT(end.message, HasSubstr("data_loader 0 exited with code 4"));
}

TEST_F(LauncherTest, ARestartingCoordinatorEndsTheGenerationWithItsReason) {
  job_.set_max_restarts(1);
  AppendGeneration(1);
  AppendToLog("cut { generation: 1 cut: 'cut_0001_000004' step: 1200 }");
  ScriptCoordinator("state: RUNNING generation: 1 train { step: 1234 samples: 9000 }");
  on_message_ = [this] { SetStatus("state: FAILED stop_reason: 'embedding_ps 0: damaged'"); };
  const RunEnd end =
      Run([] {}, {},
          [&](const StatusAnswer& status) {
            if (status.state() == RUNNING) {
              SetStatus(
                  "state: RESTARTING generation: 1 train { step: 1234 samples: 9000 } "
                  "stop_reason: 'nn_worker 0: no answer'");
            }
            return true;
          });
  ASSERT_THAT(messages_, SizeIs(1));
  EXPECT_THAT(messages_[0], AllOf(HasSubstr("nn_worker 0: no answer\n  nn_worker 0 was ended"),
                                  HasSubstr("generation 2 goes on from step 1,200 "
                                            "(cut_0001_000004); about 34 steps after it are lost "
                                            "and trained again")));
  EXPECT_EQ(end.kind, RunEnd::FAILED);
  EXPECT_THAT(end.message, HasSubstr("embedding_ps 0: damaged"));
  EXPECT_THAT(end.outlook, HasSubstr("run` goes on from step 1,200 (cut_0001_000004)"));
  EXPECT_THAT(ArgsOf("coordinator0"), HasSubstr("--cause=nn_worker 0: no answer\n"));
  ExpectNobodyIsLeft();
}

TEST_F(LauncherTest, ACutStartsTheCountOfRestartsAgain) {
  job_.set_max_restarts(1);
  int deaths = 0;
  ScriptCoordinator("state: RUNNING generation: 1");
  // Every death but the last has a cut before it.
  const RunEnd end = Run(
      [] {}, {},
      [&](const StatusAnswer&) {
        if (deaths < 3) {
          AppendToLog("cut { generation: 1 cut: 'cut_" + std::to_string(deaths) + "' step: 5 }");
        }
        if (deaths++ < 5) launcher_->Signal(EMBEDDING_PS, 0, SIGKILL).IgnoreError();
        return true;
      });
  EXPECT_EQ(end.kind, RunEnd::FAILED);
  EXPECT_THAT(messages_, SizeIs(3));
  for (const std::string& message : messages_)
    EXPECT_THAT(message, Not(HasSubstr(" s generation")));
}

TEST_F(LauncherTest, TheNextGenerationHasTheProcessesOfTheNewestJobOfTheLog) {
  job_.set_max_restarts(0);
  AppendGeneration(1);
  ScriptCoordinator("state: RUNNING generation: 1");
  on_message_ = [this] { SetStatus("state: RUNNING generation: 3"); };
  const RunEnd end =
      Run([] {}, {},
          [&](const StatusAnswer& status) {
            if (status.generation() == 1 && status.state() == RUNNING) {
              AppendToLog("cut { generation: 1 cut: 'cut_0001_000001' step: 7 }");
              AppendToLog(
                  "generation { generation: 2 cause: 'scale' job { name: 'scripts' "
                  "embedding_ps { replicas: 2 } nn_worker { replicas: 1 } max_restarts: 0 } }");
              SetStatus("state: RESTARTING generation: 1 train { step: 7 }");
            }
            return status.generation() != 3;
          });
  EXPECT_EQ(end.kind, RunEnd::DISMISSED);
  ASSERT_THAT(messages_, SizeIs(1));
  EXPECT_EQ(messages_[0],
            "the run is scaled\n  generation 3 goes on from step 7 (cut_0001_000001); no work is "
            "lost");
  EXPECT_THAT(ArgsOf("embedding_ps1"), HasSubstr("--role_index=1"));
  const std::string args = ArgsOf("nn_worker1");
  EXPECT_EQ(std::count(args.begin(), args.end(), '\n'), 1) << "of the first generation alone";
  EXPECT_THAT(ContentOf(folder_->JobPath()), HasSubstr("embedding_ps {\n  replicas: 2"));
  ExpectNobodyIsLeft();
}

TEST_F(LauncherTest, AResumedJobIsTheNextOneUntilAGenerationHasIt) {
  job_.set_max_restarts(5);
  AppendGeneration(4);
  AppendToLog("cut { generation: 4 cut: 'cut_0004_000001' step: 7 }");
  LaunchOptions options;
  options.next_job = true;
  options.from_cut = "cut_0004_000001";
  options.cause = "resume";
  ScriptCoordinator("state: RUNNING generation: 5");
  int asked = 0;
  Run([] {}, options,
      [&](const StatusAnswer&) {
        ++asked;
        // The first coordinator dies before it has written its generation, the second one after.
        if (asked == 2) {
          AppendToLog(
              "generation { generation: 5 job { name: 'new' max_restarts: 5 nn_worker { "
              "replicas: 2 } } }");
        }
        if (asked < 3) launcher_->Signal(COORDINATOR, 0, SIGKILL).IgnoreError();
        return asked < 3;
      });
  const std::string args = ArgsOf("coordinator0");
  std::vector<std::string> lives;
  for (size_t at = 0; at < args.size(); at = args.find('\n', at) + 1) {
    lives.push_back(args.substr(at, args.find('\n', at) - at));
  }
  ASSERT_THAT(lives, SizeIs(3));
  EXPECT_THAT(lives[0], HasSubstr(" --cause=resume --from=cut_0004_000001 --next_job"));
  EXPECT_THAT(lives[1], HasSubstr("coordinator was killed by signal 9 (Killed) "
                                  "--from=cut_0004_000001 --next_job"));
  EXPECT_THAT(lives[2], AllOf(HasSubstr("--cause=coordinator was killed"), Not(HasSubstr("--from")),
                              Not(HasSubstr("--next_job"))));
}

TEST_F(LauncherTest, ACoordinatorThatCannotBeginEndsTheRun) {
  job_.set_max_restarts(5);
  SetProgram("deploy/coordinator", "sleep 0.5; echo 'error: the cut is of another job'; exit 1");
  const RunEnd end = Run([] {});
  EXPECT_EQ(end.kind, RunEnd::FAILED);
  EXPECT_THAT(end.message, AllOf(HasSubstr("coordinator exited with code 1"),
                                 HasSubstr("the cut is of another job")));
  EXPECT_THAT(messages_, SizeIs(0));
}

TEST_F(LauncherTest, ARunWhoseLogHasAnEndHasFinished) {
  job_.set_max_restarts(5);
  const RunEnd end = Run([&] {
    AppendGeneration(1);
    AppendToLog("end { result { steps: 77 } }");
    kill(pids_["coordinator0"], SIGKILL);
  });
  EXPECT_EQ(end.kind, RunEnd::FINISHED);
  EXPECT_EQ(end.last_status.result().steps(), 77u);
  EXPECT_THAT(messages_, SizeIs(0));
  EXPECT_THAT(end.warnings, SizeIs(0));
}

TEST_F(LauncherTest, ADamagedLogEndsTheRunAndIsNamed) {
  job_.set_max_restarts(5);
  const RunEnd end = Run([&] {
    AppendToLog("cut { generation: 1 cut: 'cut_0001_000001' step: 7 }");
    std::ofstream(dir_ + "/run/log/00000001", std::ios::app) << "x";
    kill(pids_["coordinator0"], SIGKILL);
  });
  EXPECT_EQ(end.kind, RunEnd::FAILED);
  EXPECT_THAT(end.message, AllOf(HasSubstr("coordinator was killed"),
                                 HasSubstr("/run/log/00000001 is damaged")));
}

TEST_F(LauncherTest, ALostStarterEndsTheRunWithAMessage) {
  job_.set_max_restarts(5);
  const RunEnd end = Run([&] { kill(launcher_->starter_pid(), SIGKILL); });
  EXPECT_EQ(end.kind, RunEnd::FAILED);
  EXPECT_THAT(end.message, HasSubstr("the process that starts the others (process "));
  EXPECT_THAT(end.message, HasSubstr(" has died, and all others have ended with it"));
  for (const auto& [name, pid] : pids_) {
    // It is reaped by nobody in some containers, and a zombie runs no more.
    while (kill(pid, 0) == 0) {
      const std::string stat = ContentOf("/proc/" + std::to_string(pid) + "/stat");
      if (stat.empty() || stat.find(") Z ") != std::string::npos) break;
    }
  }
}

TEST_F(LauncherTest, TheFirstSignalLetsATrainingTakeALastCut) {
  AppendGeneration(1);
  ScriptCoordinator("state: RUNNING generation: 1");
  SetStatus("state: RUNNING generation: 1 train { step: 7 }", "on_wish");
  for (const char* role : {"embedding_ps", "embedding_worker", "data_loader", "nn_worker"}) {
    SetProgram(role, "trap 'exit 0' TERM\nwhile true; do sleep 0.1; done");
  }
  int asked = 0;
  int asked_before_end = 0;
  const RunEnd end =
      Run([] {}, {},
          [&](const StatusAnswer& status) {
            if (++asked == 1) kill(getpid(), SIGINT);
            if (status.train().step() == 7 && asked_before_end++ == 1) {
              AppendToLog("cut { generation: 1 cut: 'cut_0001_000001' step: 7 last: true }");
              SetStatus("state: STOPPED generation: 1 train { step: 7 }");
              for (const Role role : {EMBEDDING_PS, EMBEDDING_WORKER, DATA_LOADER, NN_WORKER}) {
                launcher_->Signal(role, 0, SIGTERM).IgnoreError();
              }
              launcher_->Signal(NN_WORKER, 1, SIGTERM).IgnoreError();
            }
            return true;
          });
  EXPECT_THAT(ContentOf(dir_ + "/run/wish.textproto"), HasSubstr("kind: STOP"));
  EXPECT_EQ(end.kind, RunEnd::INTERRUPTED);
  EXPECT_EQ(end.message, "Interrupt");
  EXPECT_THAT(end.outlook, AllOf(HasSubstr("no work is lost; `satrap resume "),
                                 HasSubstr("` goes on from step 7 (cut_0001_000001)")));
  ASSERT_THAT(messages_, SizeIs(1));
  EXPECT_THAT(messages_[0],
              HasSubstr("Interrupt: the run takes a last cut and stops, within 25 s"));
  ExpectNobodyIsLeft();
}

TEST_F(LauncherTest, ALastCutThatTakesTooLongIsGivenUpAndTheLossIsTold) {
  job_.set_stop_seconds(0.5);
  AppendGeneration(1);
  AppendToLog("cut { generation: 1 cut: 'cut_0001_000001' step: 7 }");
  ScriptCoordinator("state: RUNNING generation: 1 train { step: 9 }");
  SetStatus("state: RUNNING generation: 1 train { step: 12 }", "on_wish");
  int asked = 0;
  const RunEnd end = Run([] {}, {},
                         [&](const StatusAnswer&) {
                           if (++asked == 1) kill(getpid(), SIGTERM);
                           return true;
                         });
  EXPECT_EQ(end.kind, RunEnd::INTERRUPTED);
  EXPECT_THAT(end.outlook, HasSubstr("goes on from step 7 (cut_0001_000001); about 5 steps after "
                                     "it are lost"));
  ExpectNobodyIsLeft();
}

TEST_F(LauncherTest, TheSecondSignalEndsTheRunAtOnce) {
  AppendGeneration(1);
  ScriptCoordinator("state: RUNNING generation: 1");
  SetStatus("state: RUNNING generation: 1 train { step: 7 }", "on_wish");
  int asked = 0;
  const auto start = Clock::now();
  const RunEnd end = Run([] {}, {},
                         [&](const StatusAnswer& status) {
                           if (++asked == 1 || status.train().step() == 7) kill(getpid(), SIGINT);
                           return true;
                         });
  EXPECT_EQ(end.kind, RunEnd::INTERRUPTED);
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(10)) << "long before stop_seconds";
  ExpectNobodyIsLeft();
}

TEST_F(LauncherTest, ADeathDuringTheLastCutEndsTheRun) {
  job_.set_max_restarts(5);
  AppendGeneration(1);
  ScriptCoordinator("state: RUNNING generation: 1");
  SetStatus("state: RUNNING generation: 1 train { step: 7 }", "on_wish");
  int asked = 0;
  const RunEnd end = Run([] {}, {},
                         [&](const StatusAnswer& status) {
                           if (++asked == 1) kill(getpid(), SIGINT);
                           if (status.train().step() == 7)
                             launcher_->Signal(EMBEDDING_PS, 0, SIGKILL).IgnoreError();
                           return true;
                         });
  EXPECT_EQ(end.kind, RunEnd::INTERRUPTED);
  EXPECT_THAT(messages_, SizeIs(1)) << "that of the signal";
  ExpectNobodyIsLeft();
}

TEST_F(LauncherTest, AStopThatAnotherCommandWishedEndsTheRunWell) {
  AppendGeneration(1);
  AppendToLog("cut { generation: 1 cut: 'cut_0001_000001' step: 7 }");
  for (const char* role : {"embedding_ps", "embedding_worker", "data_loader", "nn_worker"}) {
    SetProgram(role, "sleep 1; exit 0");
  }
  ScriptCoordinator("state: STOPPED generation: 1 train { step: 7 }");
  const RunEnd end = Run([] {});
  EXPECT_EQ(end.kind, RunEnd::STOPPED);
  EXPECT_THAT(end.outlook, HasSubstr("no work is lost; `satrap resume "));
  EXPECT_THAT(end.warnings, SizeIs(0));
  ExpectNobodyIsLeft();
}

}  // namespace
}  // namespace satrap
