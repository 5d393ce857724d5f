// Tests the generations of a run: its processes die, are started again, or continue after a
// suspension although their generation is over. The test starts the roles itself, as a cluster
// does, because the launcher ends all processes as soon as one of them dies.

#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/checkpoint/manifest.h"
#include "common/checkpoint/run_log.h"
#include "common/role/ending.h"
#include "gmock/gmock.h"
#include "tests/integration/run_fixture.h"

namespace satrap {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr double kSecondsToEnd = 60;

class RestartTest : public RunFixture {
 protected:
  // Writes the resolved job that all roles of the following runs share. Its run folder is
  // Path("run"). It has no validation, so nothing is saved before the end. Training on
  // `train_samples` samples must take some seconds even on a fast machine: WaitUntilTraining waits
  // for a line that comes after a second.
  void MakeJob(int64_t train_samples, const std::string& more) {
    const std::string job =
        WriteJob(train_samples, absl::StrCat(more, "\nrun_dir: \"", Path("run"), "\""));
    const CommandEnd end = Satrap(
        {"validate", job, "--set", "embedding_worker.replicas=1", "--set", "nn_worker.replicas=1",
         "--set", "data.synthetic.valid_samples=0", "--set", "global_batch_size=128"});
    ASSERT_EQ(end.exit_code, 0) << end.err;
    job_ = WriteFile("job.textproto", end.out);
  }

  std::string ListenOf(const std::string& process) const {
    return listen_.count(process) > 0 ? listen_.at(process) : Address(process);
  }
  std::string Address(const std::string& process) const { return "unix:" + Path(process); }
  std::string EndingPath(const std::string& process) const { return Path(process + ".ending"); }

  std::vector<std::string> RoleArgs(const std::string& role, int index,
                                    const std::string& listen) const {
    std::vector<std::string> args = {ProgramPath(absl::StrCat(role, "/", role)),
                                     absl::StrCat("--role_index=", index),
                                     "--ending=" + EndingPath(absl::StrCat(role, "_", index)),
                                     "--coordinator=" + ListenOf("coordinator")};
    if (role == "nn_worker") {
      args.push_back("--advertise=127.0.0.1");
    } else if (role != "data_loader") {
      args.push_back("--listen=" + listen);
    }
    return args;
  }

  // Starts a role. `wrapper` is a command that runs the rest of its command line as a program.
  void StartRole(const std::string& role, int index, const std::vector<std::string>& wrapper = {}) {
    const std::string name = absl::StrCat(role, "_", index);
    std::vector<std::string> argv = wrapper;
    const std::vector<std::string> args = RoleArgs(role, index, ListenOf(name));
    argv.insert(argv.end(), args.begin(), args.end());
    run_[name] = StartProgram(argv);
  }

  // Starts the coordinator and all roles of the job except `left_out`: the next generation of the
  // run in Path("run").
  void StartGeneration(const std::string& left_out = "") {
    run_.clear();
    run_["coordinator"] = Start("deploy/coordinator/coordinator",
                                {"--config=" + job_, "--listen=" + ListenOf("coordinator"),
                                 "--ending=" + EndingPath("coordinator")});
    const std::map<std::string, int> replicas = {
        {"embedding_ps", 2}, {"embedding_worker", 1}, {"data_loader", 1}, {"nn_worker", 1}};
    for (const auto& [role, count] : replicas) {
      for (int i = 0; i < count; ++i) {
        if (absl::StrCat(role, "_", i) != left_out) StartRole(role, i);
      }
    }
  }

  // Starts a new run in Path("run").
  void StartRun(const std::string& left_out = "") {
    fs::remove_all(Path("run"));
    fs::create_directories(Path("run"));
    StartGeneration(left_out);
  }

  std::string LogOf(const std::string& name) const { return ReadFile(run_.at(name).err_path); }

  std::string AllLogs() const {
    std::string text;
    for (const auto& [name, command] : run_) {
      absl::StrAppend(&text, "---- ", name, "\n", ReadFile(command.err_path));
    }
    return text;
  }

  // Kills every process of the run but `survivor`.
  void KillRunExcept(const std::string& survivor) {
    for (const auto& [name, command] : run_) {
      if (name == survivor) continue;
      SendSignal(command.pid, SIGKILL);
      WaitFor(command, kSecondsToEnd);
    }
  }

  // Waits until the run has finished and every process has exited with 0.
  void ExpectFinished() {
    for (const auto& [name, command] : run_) {
      if (name == "coordinator") continue;
      const CommandEnd end = WaitFor(command, 300);
      EXPECT_EQ(end.exit_code, 0) << name << ": " << end.err;
    }
    const Command& coordinator = run_.at("coordinator");
    SendSignal(coordinator.pid, SIGTERM);
    EXPECT_EQ(WaitFor(coordinator, kSecondsToEnd).exit_code, 0) << AllLogs();
  }

  // Waits until the generation has ended. Every process must have exited with 75, or with 76 if its
  // failure is a consequence of another one, and must have left the same ending as its coordinator.
  void ExpectStartAgain() {
    for (const auto& [name, command] : run_) {
      const CommandEnd end = WaitFor(command, kSecondsToEnd);
      EXPECT_THAT(end.exit_code, AnyOf(kExitStartAgain, kExitEchoStartAgain))
          << name << ": " << end.err;
    }
    const auto known = ReadEnding(EndingPath("coordinator"));
    ASSERT_TRUE(known.has_value());
    EXPECT_NE(known->text(), "");
    for (const auto& [name, command] : run_) {
      const auto left = ReadEnding(EndingPath(name));
      ASSERT_TRUE(left.has_value()) << name;
      EXPECT_EQ(left->SerializeAsString(), known->SerializeAsString()) << name;
      fs::remove(EndingPath(name));
    }
  }

  bool RunIsOver() const {
    const auto log = RunLog::Open(Path("run"), DiskFileSystem());
    EXPECT_TRUE(log.ok()) << log.status();
    return log.ok() && log->end() != nullptr;
  }
  uint64_t DigestOfModel() const {
    const auto manifest = ReadManifest(Path("run/checkpoints/latest"));
    EXPECT_TRUE(manifest.ok()) << manifest.status() << AllLogs();
    return manifest.ok() ? ModelDigest(*manifest) : 0;
  }

  std::string job_;
  std::map<std::string, std::string> listen_;  // addresses other than Address(name), by name
  std::map<std::string, Command> run_;         // by name: "coordinator", "embedding_ps_1"
};

// The process among `candidates`, wrappers included, that runs `program`; 0 if there is none.
pid_t ProcessOfProgram(const std::vector<pid_t>& candidates, const std::string& program) {
  for (const pid_t pid : candidates) {
    std::error_code error;
    const std::string exe =
        fs::read_symlink(absl::StrCat("/proc/", pid, "/exe"), error).filename().string();
    if (!error && exe == program) return pid;
  }
  return 0;
}

class RestartedPsTest : public RestartTest {
 protected:
  // Kills embedding PS 1 while the run trains, and starts it again at the same address.
  void KillAndRestartPs(const std::vector<std::string>& wrapper) {
    MakeJob(1000000, "mode: SYNC reproducible: true");
    StartRun(/*left_out=*/"embedding_ps_1");
    StartRole("embedding_ps", 1, wrapper);
    ASSERT_TRUE(WaitUntilTraining(Path("run"))) << AllLogs();
    const Command first = run_.at("embedding_ps_1");
    const pid_t ps = ProcessOfProgram(ProcessesWith(Address("embedding_ps_1")), "embedding_ps");
    ASSERT_GT(ps, 0);
    SendSignal(ps, SIGKILL);
    WaitFor(first, kSecondsToEnd);
    StartRole("embedding_ps", 1, wrapper);
  }

  void ExpectGenerationEndsAndTheNextOneFinishes() {
    ExpectStartAgain();
    EXPECT_THAT(LogOf("coordinator"),
                AllOf(HasSubstr("embedding_ps 1"), HasSubstr("was started again"),
                      HasSubstr("RESTARTING"), Not(HasSubstr("FINISHED"))));
    EXPECT_THAT(LogOf("nn_worker_0"), HasSubstr("this generation is over"));
    EXPECT_FALSE(RunIsOver());
    StartGeneration();
    ExpectFinished();
    EXPECT_THAT(LogOf("coordinator"), HasSubstr("generation=2"));
  }
};

TEST_F(RestartedPsTest, EndsTheGenerationAndTheNextOneFinishes) {
  KillAndRestartPs({});
  if (!HasFatalFailure()) ExpectGenerationEndsAndTheNextOneFinishes();
}

// In a container every program is process 1, so a restarted PS has the process number of the first.
TEST_F(RestartedPsTest, EndsTheGenerationThoughItHasTheNumberOfTheFirst) {
  std::vector<std::string> wrapper;
  for (const char* flags : {"-pf", "-Urpf"}) {
    const Command command = StartProgram({"unshare", flags, "--mount-proc", "true"});
    if (WaitFor(command).exit_code == 0) {
      wrapper = {"unshare", flags, "--mount-proc", "--kill-child"};
      break;
    }
  }
  if (wrapper.empty()) {
    printf("skipped: unshare -pf and unshare -Urpf are not permitted here\n");
    GTEST_SKIP() << "unshare -pf and unshare -Urpf are not permitted here";
  }
  KillAndRestartPs(wrapper);
  if (!HasFatalFailure()) ExpectGenerationEndsAndTheNextOneFinishes();
}

TEST_F(RestartTest, AfterTheDeathOfAPsTheNextGenerationMakesTheUndisturbedModel) {
  MakeJob(1000000, "mode: SYNC reproducible: true");
  StartRun();
  ExpectFinished();
  const uint64_t undisturbed = DigestOfModel();
  StartRun();
  ASSERT_TRUE(WaitUntilTraining(Path("run"))) << AllLogs();
  SendSignal(run_.at("embedding_ps_1").pid, SIGKILL);
  WaitFor(run_.at("embedding_ps_1"), kSecondsToEnd);
  run_.erase("embedding_ps_1");
  ExpectStartAgain();
  StartGeneration();
  ExpectFinished();
  EXPECT_EQ(DigestOfModel(), undisturbed);
  // A generation of a finished run does nothing.
  StartGeneration();
  ExpectFinished();
  EXPECT_THAT(LogOf("nn_worker_0"), HasSubstr("the run has finished already"));
}

TEST_F(RestartTest, AProgramWithoutKernelsRefusesAJobOnADevice) {
  MakeJob(1000, "");
  job_ = WriteFile("host.textproto",
                   absl::StrReplaceAll(ReadFile(job_), {{"device: CPU", "device: HOST"}}));
  StartRun();
  const CommandEnd end = WaitFor(run_.at("nn_worker_0"), kSecondsToEnd);
  EXPECT_NE(end.exit_code, 0);
  EXPECT_THAT(end.err, HasSubstr("nn_worker.device is HOST, but this program is for CPU alone: run "
                                 "nn_worker_host in place of nn_worker"));
  run_.erase("nn_worker_0");
  KillRunExcept("");
}

// Each of these processes is suspended, so that it outlives its generation and wakes up in the next
// one. Then it still sends what it would have sent before: the same indices, numbers and handles.
class ZombieTest : public RestartTest,
                   public testing::WithParamInterface<std::vector<std::string>> {};

TEST_P(ZombieTest, AProcessOfAnEarlierGenerationIsRefusedAndChangesNothing) {
  MakeJob(1000000, "mode: SYNC reproducible: true");
  StartRun();
  ExpectFinished();
  const uint64_t undisturbed = DigestOfModel();
  for (const std::string& zombie : GetParam()) {
    SCOPED_TRACE(zombie);
    listen_.clear();
    StartRun();
    ASSERT_TRUE(WaitUntilTraining(Path("run"))) << AllLogs();
    const Command stopped = run_.at(zombie);
    SendSignal(stopped.pid, SIGSTOP);
    KillRunExcept(zombie);
    // A suspended server still holds its socket, so the new process listens at another address.
    // This works because members learn addresses only from the coordinator.
    listen_[zombie] = Address(zombie + "_again");
    fs::remove(Path("run/metrics.jsonl"));  // so that WaitUntilTraining waits for new lines
    StartGeneration();
    ASSERT_TRUE(WaitUntilTraining(Path("run"))) << AllLogs();
    SendSignal(stopped.pid, SIGCONT);
    const CommandEnd end = WaitFor(stopped, kSecondsToEnd);
    EXPECT_EQ(end.exit_code, kExitStartAgain) << end.err;
    EXPECT_THAT(end.err, HasSubstr(zombie == "coordinator" ? "another coordinator" : "another run"))
        << "the zombie says why it ends";
    EXPECT_FALSE(RunIsOver()) << "the run still trains";
    ExpectFinished();
    EXPECT_EQ(DigestOfModel(), undisturbed);
  }
}

// The zombies are in two groups, so that two shards of the test can run them.
INSTANTIATE_TEST_SUITE_P(OfDataAndTraining, ZombieTest,
                         testing::Values(std::vector<std::string>{"data_loader_0", "nn_worker_0"}));
INSTANTIATE_TEST_SUITE_P(OfEmbeddingsAndRun, ZombieTest,
                         testing::Values(std::vector<std::string>{"embedding_worker_0",
                                                                  "coordinator"}));

}  // namespace
}  // namespace satrap
