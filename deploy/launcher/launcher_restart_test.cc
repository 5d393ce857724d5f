// Tests runs that are restarted, resumed and scaled. launcher_stop_test.cc tests runs that are
// stopped.

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "deploy/launcher/testing/launcher_fixture.h"
#include "gmock/gmock.h"

namespace satrap {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using Clock = std::chrono::steady_clock;

TEST_F(LauncherTest, EachDeathIsOneMessageAndOneRestartUntilThereAreTooMany) {
  job_.set_max_restarts(2);
  SetProgram("data_loader", "sleep 0.3; exit 3");
  SetProgram("embedding_ps", "echo 'T info embedding_ps/0 ready'; exec sleep 60");
  const auto start = Clock::now();
  const RunEnd end = Run([&] { kill(pids_["embedding_ps0"], SIGKILL); });
  EXPECT_EQ(end.kind, RunEnd::FAILED);
  ASSERT_THAT(messages_, SizeIs(2));
  EXPECT_THAT(messages_[0], Not(HasSubstr("it says"))) << "nobody can log that it gets SIGKILL";
  EXPECT_THAT(messages_[0], AllOf(HasSubstr("embedding_ps 0 was killed by signal 9 (Killed)"),
                                  HasSubstr("\n  generation 1 continues from the beginning; at "
                                            "most the work after it is lost and trained again")));
  EXPECT_THAT(messages_[1], AllOf(HasSubstr("data_loader 0 exited with code 3"),
                                  HasSubstr("\n  in 1 s generation ")));
  EXPECT_GE(Clock::now() - start, std::chrono::milliseconds(1000)) << "pauses of 0 and 1 s";
  EXPECT_THAT(end.message, AllOf(HasSubstr("data_loader 0 exited with code 3"),
                                 HasSubstr("restarted 2 times without a cut in between")));
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

// A PS fails before it has registered, so only the launcher knows of the failure, not a
// coordinator.
TEST_F(LauncherTest, WhatNoRestartCuresEndsTheRunAtTheSecondTimeBeforeReady) {
  job_.set_max_restarts(9);
  SetProgram("embedding_ps",
             "echo \"why: MEMBER_FAILED kind: NO_ADDRESS origin { role: EMBEDDING_PS index: 0 } "
             "text: 'no loopback'\" > $ending\n"
             "echo 'error: embedding_ps: 127.0.0.1 cannot be used'; exit 75");
  const RunEnd end = Run([] {});
  EXPECT_EQ(end.kind, RunEnd::FAILED);
  EXPECT_THAT(messages_, SizeIs(1)) << "one restart";
  EXPECT_THAT(end.message,
              AllOf(HasSubstr("embedding_ps 0 exited with code 75"),
                    HasSubstr("it says: error: embedding_ps: 127.0.0.1 cannot be used"),
                    HasSubstr("no restart cures it: bring the interface up")));
  EXPECT_EQ(end.ending.kind(), Ending::NO_ADDRESS);
  EXPECT_TRUE(end.ending.before_ready());
  EXPECT_THAT(ArgsOf("coordinator0"),
              HasSubstr("--ended=why: MEMBER_FAILED origin { role: EMBEDDING_PS index: 0 } kind: "
                        "NO_ADDRESS before_ready: true"));
  ExpectNobodyIsLeft();
}

TEST_F(LauncherTest, TheExitOfAnOldGenerationIsNotThatOfTheNext) {
  job_.set_max_restarts(1);
  // In the first generation all processes are killed at the same moment, and must not be mistaken
  // for processes of the second one.
  SetProgram("data_loader", "[ $life = 1 ] && exec sleep 60; sleep 1; exit 4");
  const RunEnd end = Run([&] { kill(pids_["nn_worker1"], SIGKILL); });
  ASSERT_THAT(messages_, SizeIs(1));
  EXPECT_THAT(end.message, HasSubstr("data_loader 0 exited with code 4"));
}

TEST_F(LauncherTest, ARestartingCoordinatorEndsTheGenerationWithItsReason) {
  job_.set_max_restarts(1);
  AppendGeneration(1);
  CommitCut(1, 4, 1200);
  ScriptCoordinator("state: RUNNING generation: 1 train { step: 1234 samples: 9000 }");
  on_message_ = [this] { SetStatus("state: FAILED ending { text: 'damaged' }"); };
  const RunEnd end =
      Run([] {}, {},
          [&](const StatusAnswer& status) {
            if (status.state() == RUNNING) {
              SetStatus(
                  "state: RESTARTING generation: 1 train { step: 1234 samples: 9000 } "
                  "ending { text: 'nn_worker 0: no answer' origin { role: NN_WORKER index: 0 } }");
            }
            return true;
          });
  ASSERT_THAT(messages_, SizeIs(1));
  EXPECT_THAT(messages_[0], AllOf(HasSubstr("nn_worker 0: no answer\n  nn_worker 0 was ended"),
                                  HasSubstr("generation 2 continues from step 1,200 "
                                            "(cut_0001_000004); about 34 steps after it are lost "
                                            "and trained again")));
  EXPECT_EQ(end.kind, RunEnd::FAILED);
  EXPECT_THAT(end.message, HasSubstr("damaged"));
  EXPECT_THAT(end.outlook, HasSubstr("run` continues from step 1,200 (cut_0001_000004)"));
  EXPECT_THAT(ArgsOf("coordinator0"),
              HasSubstr("--ended=origin { role: NN_WORKER index: 0 } --cause=nn_worker 0: no "
                        "answer\n"));
  ExpectNobodyIsLeft();
}

TEST_F(LauncherTest, ACutStartsTheCountOfRestartsAgain) {
  job_.set_max_restarts(1);
  int deaths = 0;
  ScriptCoordinator("state: RUNNING generation: 1");
  // A cut is committed before each death except the last.
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

// The ranks left because of a wish for another size, but the coordinator could not write the new
// size into the log.
TEST_F(LauncherTest, AGenerationThatLeftWithItsCutHasNotFailed) {
  job_.set_max_restarts(0);
  AppendGeneration(1);
  ScriptCoordinator("state: RUNNING generation: 1");
  on_message_ = [this] { SetStatus("state: RUNNING generation: 2"); };
  const RunEnd end =
      Run([] {}, {},
          [&](const StatusAnswer& status) {
            if (status.generation() == 1 && status.state() == RUNNING) {
              AppendToLog("cut { generation: 1 cut: 'cut_0001_000001' step: 7 leave: true }");
              SetStatus(
                  "state: RESTARTING generation: 1 train { step: 7 } ending { text: 'its change of "
                  "size cannot be written' }");
            }
            return status.generation() != 2;
          });
  EXPECT_EQ(end.kind, RunEnd::DISMISSED) << end.message;
  ASSERT_THAT(messages_, SizeIs(1));
  EXPECT_THAT(messages_[0], AllOf(HasSubstr("its change of size cannot be written"),
                                  HasSubstr("generation 2 continues from step 7 (cut_0001_000001); "
                                            "no work is lost")));
  ExpectNobodyIsLeft();
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
                  "generation { generation: 2 cut: 'cut_0001_000001' began: BEGAN_SCALE_ANNOUNCED "
                  "job { name: "
                  "'scripts' "
                  "embedding_ps { replicas: 2 } nn_worker { replicas: 1 } max_restarts: 0 } }");
              SetStatus("state: RESTARTING generation: 1 train { step: 7 }");
            }
            return status.generation() != 3;
          });
  EXPECT_EQ(end.kind, RunEnd::DISMISSED);
  ASSERT_THAT(messages_, SizeIs(1));
  EXPECT_EQ(messages_[0],
            "the run is scaled\n  generation 3 continues from step 7 (cut_0001_000001); no work is "
            "lost");
  EXPECT_THAT(ArgsOf("embedding_ps1"), HasSubstr("--role_index=1"));
  const std::string args = ArgsOf("nn_worker1");
  EXPECT_EQ(std::count(args.begin(), args.end(), '\n'), 1) << "of the first generation alone";
  EXPECT_THAT(ContentOf(folder_->JobPath()), HasSubstr("embedding_ps {\n  replicas: 2"));
  ExpectNobodyIsLeft();
}

// For example, a size that needs GPUs cannot be started if the programs were built without CUDA.
TEST_F(LauncherTest, ASizeThatCannotBeStartedIsDroppedAndTheRunGoesOnAsItWas) {
  AppendGeneration(1);
  CommitCut(1, 1, 100);
  ScriptCoordinator("state: RUNNING generation: 1");
  JobConfig wanted = job_;
  wanted.mutable_nn_worker()->set_device(NnWorkerConfig::CUDA);
  const RunEnd end =
      Run([] {}, {},
          [&](const StatusAnswer& status) {
            if (status.state() != RUNNING || status.generation() != 1) return messages_.size() < 2;
            AppendToLog(
                "generation { generation: 2 began: BEGAN_SCALE_ANNOUNCED cut: 'cut_0001_000001' "
                "job { " +
                wanted.ShortDebugString() + " } }");
            SetStatus("state: RESTARTING generation: 1 ending { why: ASKED text: 'scaled' }");
            on_message_ = [this] {
              if (messages_.size() == 2) SetStatus("state: RUNNING generation: 3");
            };
            return true;
          });
  EXPECT_EQ(end.kind, RunEnd::DISMISSED);
  ASSERT_THAT(messages_, SizeIs(2));
  EXPECT_THAT(
      messages_[1],
      AllOf(HasSubstr("the change of the job is dropped: nn_worker.device from CPU to CUDA"),
            HasSubstr("because it was built without CUDA")));
  const std::string args = ArgsOf("coordinator0");
  const std::string last = args.substr(args.rfind("--config"));
  EXPECT_THAT(last, AllOf(HasSubstr("--next_job"), HasSubstr("--cause=cannot train on a GPU")));
  EXPECT_THAT(ContentOf(dir_ + "/run/job.textproto"), Not(HasSubstr("CUDA")));
  ExpectNobodyIsLeft();
}

// The log's entry for generation `number` with the job `job`. `began` is the name of a value of
// Began, which says whether the generation was only announced (BEGAN_SCALE_ANNOUNCED) or claimed.
std::string GenerationText(int number, const std::string& began, const JobConfig& job) {
  return "generation { generation: " + std::to_string(number) + " began: " + began +
         " cut: 'cut_0001_000001' job { " + job.ShortDebugString() + " } }";
}

// The test appends to the log the entries that real coordinators would append.
TEST_F(LauncherTest, ASizeThatLacksMemoryTwiceIsDroppedAndTheRunGoesOnAsItWas) {
  job_.set_max_restarts(9);
  AppendGeneration(1);
  CommitCut(1, 1, 100);
  ScriptCoordinator("state: RUNNING generation: 1");
  // PS 1, which only the larger size has, lacks memory.
  SetProgram("embedding_ps",
             "[ $index = 0 ] && exec sleep 60\n"
             "echo \"why: MEMBER_FAILED kind: NO_MEMORY origin { role: EMBEDDING_PS index: 1 } "
             "text: 'no memory'\" > $ending; exit 75");
  JobConfig wanted = job_;
  wanted.mutable_embedding_ps()->set_replicas(2);
  on_message_ = [&] {
    if (messages_.size() == 1) AppendToLog(GenerationText(3, "BEGAN_SCALED", wanted));
    if (messages_.size() == 2) AppendToLog(GenerationText(4, "BEGAN_RESTART", wanted));
    SetStatus(messages_.size() < 3 ? "state: STARTING" : "state: RUNNING generation: 5");
  };
  const RunEnd end =
      Run([] {}, {},
          [&](const StatusAnswer& status) {
            if (status.generation() == 1 && status.state() == RUNNING) {
              AppendToLog(GenerationText(2, "BEGAN_SCALE_ANNOUNCED", wanted));
              SetStatus("state: RESTARTING generation: 1 ending { why: ASKED text: 'scaled' }");
            }
            return status.generation() != 5;
          });
  EXPECT_EQ(end.kind, RunEnd::DISMISSED) << end.message;
  ASSERT_THAT(messages_, SizeIs(4));
  EXPECT_THAT(messages_[1], AllOf(HasSubstr("embedding_ps 1 exited with code 75"),
                                  HasSubstr("\n  in 5 s generation 4 ")));
  EXPECT_THAT(
      messages_[2],
      AllOf(HasSubstr("the change of the job is dropped: embedding_ps.replicas from 1 to 2"),
            HasSubstr("no restart cures it: give it more memory")));
  EXPECT_THAT(messages_[3], HasSubstr("\n  in 5 s generation 5 ")) << "no failure without a pause";
  const std::string args = ArgsOf("coordinator0");
  EXPECT_THAT(args.substr(args.rfind("--config")),
              AllOf(HasSubstr("kind: NO_MEMORY"), HasSubstr("--next_job")));
  const std::string second = ArgsOf("embedding_ps1");
  EXPECT_EQ(std::count(second.begin(), second.end(), '\n'), 2);
  EXPECT_THAT(ContentOf(folder_->JobPath()), Not(HasSubstr("replicas: 2\n}\nembedding_worker")));
  ExpectNobodyIsLeft();
}

// The new size is announced in the log, but its generation never begins. Only the first attempt may
// count as a restart that was asked for. If all of them did, the run would be restarted for ever
// without a pause.
TEST_F(LauncherTest, AnAnnouncedSizeThatCannotBeStartedIsOneWishAndThenAFailure) {
  job_.set_max_restarts(0);
  AppendGeneration(1);
  CommitCut(1, 1, 100);
  ScriptCoordinator("state: RUNNING generation: 1");
  JobConfig wanted = job_;
  wanted.mutable_embedding_ps()->set_replicas(2);
  on_message_ = [&] {
    // The starter can open no more files, so no process of the new size starts.
    const rlimit no_more = {3, 3};
    ASSERT_EQ(prlimit(launcher_->starter_pid(), RLIMIT_NOFILE, &no_more, nullptr), 0);
  };
  const RunEnd end =
      Run([] {}, {},
          [&](const StatusAnswer& status) {
            if (status.state() != RUNNING) return messages_.size() < 5;
            AppendToLog(GenerationText(2, "BEGAN_SCALE_ANNOUNCED", wanted));
            SetStatus("state: RESTARTING generation: 1 ending { why: ASKED text: 'scaled' }");
            return true;
          });
  EXPECT_EQ(end.kind, RunEnd::FAILED);
  EXPECT_THAT(messages_, SizeIs(1)) << "the run is scaled";
  EXPECT_THAT(end.message, HasSubstr("Too many open files"));
  ExpectNobodyIsLeft();
}

TEST_F(LauncherTest, ASizeThatItsCoordinatorHasDroppedIsOneWishAndThenAFailure) {
  job_.set_max_restarts(0);
  AppendGeneration(1);
  CommitCut(1, 1, 100);
  JobConfig wanted = job_;
  wanted.mutable_embedding_ps()->set_replicas(2);
  AppendToLog(GenerationText(2, "BEGAN_SCALED", wanted));
  ScriptCoordinator("state: STARTING generation: 2");
  on_message_ = [&] { SetStatus("state: RUNNING generation: 3"); };
  const RunEnd end =
      Run([] {}, {},
          [&](const StatusAnswer& status) {
            if (status.generation() == 2 && status.state() == STARTING) {
              AppendToLog("dropped { generation: 2 change: 'embedding_ps.replicas from 1 to 2' }");
              SetStatus("state: RESTARTING generation: 2 ending { text: 'there is no card' }");
            }
            // The coordinator of generation 3 dies before it has claimed its generation.
            if (status.generation() == 3) launcher_->Signal(COORDINATOR, 0, SIGKILL).IgnoreError();
            return true;
          });
  EXPECT_EQ(end.kind, RunEnd::FAILED);
  ASSERT_THAT(messages_, SizeIs(1));
  EXPECT_THAT(messages_[0], HasSubstr("there is no card"));
  EXPECT_THAT(end.message, HasSubstr("coordinator was killed by signal 9"));
  const std::string args = ArgsOf("embedding_ps0");
  EXPECT_EQ(std::count(args.begin(), args.end(), '\n'), 2);
  EXPECT_THAT(ArgsOf("coordinator0"), Not(HasSubstr("--next_job"))) << "the log says it already";
  ExpectNobodyIsLeft();
}

// The user resumes from a named cut. Going back to the earlier job is not allowed, because that
// would begin from another cut.
TEST_F(LauncherTest, AResumeFromACutWithAJobThatCannotBeStartedDropsNothing) {
  AppendGeneration(1);
  CommitCut(1, 1, 100);
  JobConfig wanted = job_;
  wanted.mutable_nn_worker()->set_device(NnWorkerConfig::CUDA);
  AppendToLog(GenerationText(2, "BEGAN_SCALE_ANNOUNCED", wanted));
  LaunchOptions options;
  options.next_job = true;
  options.from_cut = "cut_0001_000001";
  const auto launcher = Launcher::Start(wanted, *folder_, dir_ + "/bin", options);
  ASSERT_FALSE(launcher.ok());
  EXPECT_THAT(launcher.status().message(), HasSubstr("because it was built without CUDA"));
  EXPECT_THAT(ArgsOf("coordinator0"), "") << "no coordinator drops anything";
}

// A run that was stopped or has failed is resumed.
class LauncherResumeTest : public LauncherTest,
                           public ::testing::WithParamInterface<const char*> {};

INSTANTIATE_TEST_SUITE_P(Ends, LauncherResumeTest,
                         ::testing::Values("", "end { state: STOPPED submission: 1 }",
                                           "end { state: FAILED submission: 1 }"));

TEST_P(LauncherResumeTest, AResumedJobIsTheNextOneUntilAGenerationHasIt) {
  job_.set_max_restarts(5);
  AppendGeneration(4);
  AppendToLog("cut { generation: 4 cut: 'cut_0004_000001' step: 7 }");
  const std::string end_before = GetParam();
  if (!end_before.empty()) AppendToLog(end_before);
  LaunchOptions options;
  options.next_job = true;
  options.from_cut = "cut_0004_000001";
  ScriptCoordinator("state: RUNNING generation: 5");
  int asked = 0;
  Run([] {}, options,
      [&](const StatusAnswer&) {
        ++asked;
        // The first coordinator dies before it has appended its generation, the second one after it
        // has appended its own.
        if (asked == 2) {
          AppendToLog(
              "generation { generation: 5 cut: 'cut_0004_000001' job { name: 'new' max_restarts: 5 "
              "nn_worker { "
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
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_THAT(lives[i],
                AllOf(HasSubstr(" --from=cut_0004_000001 --next_job"), Not(HasSubstr("--cause"))))
        << "a cause beside --next_job says that the log's job cannot be started";
  }
  EXPECT_THAT(lives[2], AllOf(HasSubstr("--cause=coordinator was killed"), Not(HasSubstr("--from")),
                              Not(HasSubstr("--next_job"))));
}

TEST_F(LauncherTest, ACoordinatorThatCannotBeginEndsTheRun) {
  job_.set_max_restarts(5);
  SetProgram("deploy/coordinator", "sleep 0.5; echo 'error: the cut is of another job'; exit 1");
  AppendGeneration(1);
  CommitCut(1, 1, 7);
  const RunEnd end = Run([] {});
  EXPECT_THAT(end.outlook, AllOf(HasSubstr("continues from step 7"), Not(HasSubstr("lost"))))
      << "nothing was trained";
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

TEST_F(LauncherTest, WhatOthersHeardOfACoordinatorThatIsGoneIsTheCause) {
  job_.set_max_restarts(1);
  SetProgram("deploy/coordinator", "sleep 0.6; exit 75");
  SetProgram("embedding_ps",
             "sleep 0.5; echo \"why: MEMBER_FAILED origin { role: NN_WORKER index: 1 } text: "
             "'nn_worker 1: no answer'\" > $ending; exit 76");
  const RunEnd end = Run([] {});
  ASSERT_THAT(messages_, SizeIs(1));
  EXPECT_THAT(messages_[0], HasSubstr("nn_worker 1: no answer\n  nn_worker 1 was ended; its log"));
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

// Expects that none of these processes, whose parent has ended, is running. In some containers they
// stay zombies because nobody reaps them; a zombie does not count as running.
void ExpectNoneRuns(const std::map<std::string, pid_t>& pids) {
  for (const auto& [name, pid] : pids) {
    while (kill(pid, 0) == 0) {
      // Do not use ContentOf: the process may disappear while its file is read, and only getline
      // tolerates that.
      std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
      std::string stat;
      std::getline(file, stat);
      if (stat.empty() || stat.find(") Z ") != std::string::npos) break;
    }
  }
}

TEST_F(LauncherTest, ALostStarterIsReplacedAndTheNextGenerationBegins) {
  job_.set_max_restarts(5);
  ScriptCoordinator("state: RUNNING");
  on_message_ = [&] { SetStatus("state: FINISHED"); };
  const RunEnd end = Run([&] { kill(launcher_->starter_pid(), SIGKILL); });
  EXPECT_EQ(end.kind, RunEnd::FINISHED) << end.message;
  ASSERT_THAT(messages_, SizeIs(1));
  EXPECT_THAT(messages_[0], AllOf(HasSubstr("the process that starts the others (process "),
                                  HasSubstr(" has died, and all others have ended with it\n"),
                                  HasSubstr("generation 1 continues from the beginning")));
  EXPECT_NE(PidOf("coordinator0"), pids_["coordinator0"]);
  ExpectNoneRuns(pids_);
}

TEST_F(LauncherTest, ALostStarterEndsARunThatMayNotBeRestarted) {
  const RunEnd end = Run([&] { kill(launcher_->starter_pid(), SIGKILL); });
  EXPECT_EQ(end.kind, RunEnd::FAILED);
  EXPECT_THAT(end.message, HasSubstr("the process that starts the others (process "));
  EXPECT_THAT(end.message, HasSubstr(" has died, and all others have ended with it"));
  ExpectNoneRuns(pids_);
}

}  // namespace
}  // namespace satrap
