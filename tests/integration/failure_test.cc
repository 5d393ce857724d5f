// Tests runs that fail, without restarts: each ends soon, with one message that names the cause,
// and leaves no process. tests/fault has the runs that continue after a failure.

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "tests/integration/run_fixture.h"

namespace satrap {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr double kSecondsToEnd = 60;

// Reads lines of the form LABEL,WORD.
constexpr char kCsvJob[] = R"(
  name: "csv"
  global_batch_size: 16
  data {
    csv { columns { name: "label" kind: LABEL } columns { name: "word" kind: ID } }
    train_files: "train.csv"
    max_bad_fraction: 0.125
    features { name: "word" table: "words" }
  }
  tables {
    name: "words"
    id: 0
    segments { name: "linear" dim: 1 optimizer { learning_rate: 0.1 adagrad {} } }
  }
  model { layers { name: "logit" inputs: "*.linear" sum {} } }
)";

// While an object of this class exists, newly started processes cannot write more than `max_bytes`
// into a file. Writes then fail as on a full disk, without the test having to fill one.
class SmallDisk {
 public:
  explicit SmallDisk(rlim_t max_bytes) {
    EXPECT_EQ(getrlimit(RLIMIT_FSIZE, &before_), 0);
    const rlimit small = {max_bytes, before_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
    handler_before_ = signal(SIGXFSZ, SIG_IGN);
  }
  ~SmallDisk() {
    signal(SIGXFSZ, handler_before_);
    EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &before_), 0);
  }

 private:
  rlimit before_;
  sighandler_t handler_before_;
};

class FailureTest : public RunFixture {
 protected:
  Command StartEndlessRun() {
    const std::string job = WriteJob(20000, "epochs: 100000 max_restarts: 0");
    const Command command = StartSatrap({"train", job, "--run_dir", Path("run")});
    EXPECT_TRUE(WaitUntilTraining(Path("run")))
        << ReadFile(command.err_path) << ReadFile(Path("run/logs/nn_worker_0.log"));
    return command;
  }
  // The process of a role of the run in Path("run").
  pid_t ProcessOf(const std::string& role, int index) const {
    const pid_t pid = RoleProcess(Path("run"), role, index);
    if (pid == 0) ADD_FAILURE() << "no process of " << role << " " << index;
    return pid;
  }
  bool NobodyIsLeft() const { return WaitUntilOver(Path("run"), kSecondsToEnd); }
};

class KillTest : public FailureTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(KillTest, EndsTheJobAndNamesTheDead) {
  const std::string role = GetParam();
  const int index = role == "nn_worker" || role == "embedding_ps" ? 1 : 0;
  const Command command = StartEndlessRun();
  const pid_t pid = ProcessOf(role, index);
  ASSERT_GT(pid, 0);
  SendSignal(pid, SIGKILL);
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

// The data loader is suspended, so it cannot end by itself.
TEST_F(FailureTest, NoProcessIsLeftWhenTheCommandHasEnded) {
  const Command command = StartEndlessRun();
  const pid_t still = ProcessOf("data_loader", 0), killed = ProcessOf("nn_worker", 0);
  ASSERT_GT(still, 0);
  ASSERT_GT(killed, 0);
  ASSERT_THAT(RoleProcesses(Path("run")), Contains(still));
  SendSignal(still, SIGSTOP);
  SendSignal(killed, SIGKILL);
  const CommandEnd end = WaitFor(command, kSecondsToEnd);
  EXPECT_EQ(end.exit_code, 1);
  EXPECT_THAT(end.err, HasSubstr("the job failed: nn_worker 0 was killed by signal 9"));
  EXPECT_THAT(RoleProcesses(Path("run")), IsEmpty());
}

class TerminatedRoleTest : public FailureTest, public ::testing::WithParamInterface<const char*> {};

// A role receives SIGTERM, as when a cluster deletes a pod.
TEST_P(TerminatedRoleTest, StopsTheRunWithALastCut) {
  const std::string role = GetParam();
  const Command command = StartEndlessRun();
  const pid_t pid = ProcessOf(role, 0);
  ASSERT_GT(pid, 0);
  SendSignal(pid, SIGTERM);
  const CommandEnd end = WaitFor(command, kSecondsToEnd);
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.err, AllOf(HasSubstr("satrap: stopped on request\n"),
                             HasSubstr("satrap: no work is lost; `satrap resume ")));
  EXPECT_TRUE(NobodyIsLeft());
  EXPECT_FALSE(fs::exists(Path("run/failure.txt")));
  EXPECT_THAT(
      Satrap({"status", Path("run")}).out,
      AllOf(HasSubstr(" was stopped: stopped on request"), HasSubstr("continues from step "),
            HasSubstr("its logs are in " + Path("run/logs"))));
}

TEST_F(FailureTest, TheStatusOfAFailedRunIsItsCause) {
  const Command command = StartEndlessRun();
  SendSignal(ProcessOf("nn_worker", 0), SIGKILL);
  EXPECT_EQ(WaitFor(command, kSecondsToEnd).exit_code, 1);
  EXPECT_THAT(ReadFile(Path("run/failure.txt")), HasSubstr("nn_worker 0"));
  EXPECT_THAT(Satrap({"status", Path("run")}).out,
              AllOf(HasSubstr("has failed: "), HasSubstr("nn_worker 0"),
                    HasSubstr("its logs are in " + Path("run/logs"))));
}

INSTANTIATE_TEST_SUITE_P(SomeRoles, TerminatedRoleTest,
                         ::testing::Values("coordinator", "data_loader", "embedding_ps",
                                           "nn_worker"),
                         [](const auto& info) { return std::string(info.param); });

TEST_F(FailureTest, ASilentCoordinatorIsNamed) {
  const Command command = StartEndlessRun();
  const pid_t pid = ProcessOf("coordinator", 0);
  ASSERT_GT(pid, 0);
  SendSignal(pid, SIGSTOP);
  const CommandEnd end = WaitFor(command, kSecondsToEnd);
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
  EXPECT_THAT(units.err,
              HasSubstr("model.layers[name=deep].mlp.units[0]: must be at least 1, got -5"));
  EXPECT_NE(access(Path("run").c_str(), F_OK), 0) << "no run folder was made";
}

TEST_F(FailureTest, AValueThatIsNoneIsOneMessage) {
  const CommandEnd end = Satrap({"validate", WriteJob(1000), "--set", "seed=seven"});
  EXPECT_EQ(end.exit_code, 1);
  EXPECT_EQ(end.err.find("libprotobuf"), std::string::npos) << end.err;
}

TEST_F(FailureTest, NobodyOutlivesAKilledLauncher) {
  const Command command = StartEndlessRun();
  SendSignal(command.pid, SIGKILL);
  EXPECT_EQ(WaitFor(command, kSecondsToEnd).exit_code, -1);
  EXPECT_TRUE(NobodyIsLeft());
}

TEST_F(FailureTest, TheNextRunRemovesTheSocketsOfAKilledLauncher) {
  const Command command = StartEndlessRun();
  const std::string sockets = fs::read_symlink(Path("run/sockets")).string();
  SendSignal(command.pid, SIGKILL);
  EXPECT_EQ(WaitFor(command, kSecondsToEnd).exit_code, -1);
  EXPECT_TRUE(NobodyIsLeft());
  ASSERT_TRUE(fs::is_directory(sockets)) << "who is killed removes nothing";
  const CommandEnd next = Satrap({"train", WriteJob(1000), "--run_dir", Path("next")});
  EXPECT_EQ(next.exit_code, 0) << next.err;
  EXPECT_FALSE(fs::exists(sockets));
  EXPECT_FALSE(fs::is_symlink(Path("run/sockets")));
}

TEST_F(FailureTest, AModelThatDoesNotFitOnTheDiskEndsTheJobAndIsNamed) {
  const std::string job = WriteJob(20000, "mode: SYNC");
  Command command;
  {
    const SmallDisk disk(32 << 10);
    command = StartSatrap({"train", job, "--run_dir", Path("run"), "--set",
                           "data.synthetic.vocabulary_sizes=20,20,20000", "--set",
                           "tables[0].segments[name=embedding].dim=64", "--set", "max_restarts=0"});
  }
  const CommandEnd end = WaitFor(command, kSecondsToEnd);
  EXPECT_EQ(end.exit_code, 1);
  EXPECT_EQ(CountOf(end.err, "the job failed: "), 1u) << end.err;
  EXPECT_THAT(end.err, AllOf(HasSubstr("cannot write " + Path("run/checkpoints/")),
                             HasSubstr(": File too large")));
  EXPECT_THAT(ReadFile(Path("run/failure.txt")), HasSubstr(": File too large"));
  EXPECT_FALSE(fs::exists(Path("run/checkpoints/best"))) << "a model is whole or not there";
  EXPECT_TRUE(NobodyIsLeft());
}

// A write to /dev/full fails as on a full disk. A run removes the failure.txt of an earlier failure
// when it begins. So this test makes a folder of this name, which the run does not remove.
TEST_F(FailureTest, AFullDiskIsNamedEvenIfTheCauseCannotBeKept) {
  const std::string job = WriteFile("csv.textproto", kCsvJob);
  WriteFile("train.csv", "1,a\n0,b\nnonsense\n0,b\n");
  fs::create_directories(Path("run/quarantine"));
  fs::create_symlink("/dev/full", Path("run/quarantine/g0001-loader-0.txt"));
  fs::create_directories(Path("run/failure.txt"));  // a file cannot be written there
  const CommandEnd end = Satrap({"train", job, "--run_dir", Path("run"), "--set",
                                 "data_root=" + dir_, "--set", "max_restarts=0"});
  EXPECT_EQ(end.exit_code, 1);
  const std::string cause =
      "cannot write " + Path("run/quarantine/g0001-loader-0.txt") + ": No space left on device";
  EXPECT_THAT(end.err, AllOf(HasSubstr("the job failed: data_loader 0: " + cause),
                             HasSubstr("warning: cannot write " + Path("run/failure.txt"))));
  EXPECT_EQ(CountOf(end.err, cause), 1u) << end.err;
  EXPECT_TRUE(NobodyIsLeft());
}

TEST_F(FailureTest, TooManyBadRecordsAreToldOnceWithTheirNumbersAndPlaces) {
  const std::string job = WriteFile("csv.textproto", kCsvJob);
  std::string lines;
  for (int i = 0; i < 100; ++i) absl::StrAppend(&lines, i < 40 ? "nonsense\n" : "1,a\n0,b\n");
  WriteFile("train.csv", lines);
  const CommandEnd end =
      Satrap({"train", job, "--run_dir", Path("run"), "--set", "data_root=" + dir_});
  EXPECT_EQ(end.exit_code, 1);
  const std::string places = Path("run/quarantine/g0001-loader-0.tsv");
  EXPECT_THAT(end.err,
              HasSubstr("the job failed: data_loader 0: 40 of 160 records of the train stream are "
                        "bad, more than data.max_bad_fraction (0.125); see " +
                        places));
  EXPECT_EQ(CountOf(end.err, " are bad"), 1u) << end.err;
  EXPECT_EQ(CountOf(ReadFile(places), Path("train.csv")), 40u);
  EXPECT_TRUE(NobodyIsLeft());
}

TEST_F(FailureTest, TerminationStopsEverything) {
  const Command command = StartEndlessRun();
  SendSignal(command.pid, SIGTERM);
  const CommandEnd end = WaitFor(command, kSecondsToEnd);
  EXPECT_EQ(end.exit_code, 130);
  EXPECT_THAT(end.err, HasSubstr("stopped by Terminated"));
  EXPECT_TRUE(NobodyIsLeft());
}

TEST_F(FailureTest, AHangupStopsEverythingAndRemovesTheSockets) {
  const Command command = StartEndlessRun();
  const std::string sockets = fs::read_symlink(Path("run/sockets")).string();
  SendSignal(command.pid, SIGHUP);
  const CommandEnd end = WaitFor(command, kSecondsToEnd);
  EXPECT_EQ(end.exit_code, 130);
  EXPECT_THAT(end.err, HasSubstr("stopped by Hangup; no process is left"));
  EXPECT_FALSE(fs::exists(sockets));
  EXPECT_TRUE(NobodyIsLeft());
}

TEST_F(FailureTest, AFolderWithoutAModelIsRefusedBeforeAnythingStarts) {
  fs::create_directories(Path("empty"));
  const std::string job = WriteJob(1000);
  for (const std::vector<std::string>& args :
       {std::vector<std::string>{"train", job, "--init_from", Path("empty")},
        {"train", job, "--set", "init_from=" + Path("empty")}}) {
    std::vector<std::string> all = args;
    all.insert(all.end(), {"--run_dir", Path("run")});
    const CommandEnd end = Satrap(all);
    EXPECT_EQ(end.exit_code, 1);
    EXPECT_THAT(end.err, HasSubstr("no saved model in " + Path("empty")));
    EXPECT_NE(access(Path("run").c_str(), F_OK), 0) << "no run folder was made";
  }
}

// The other rank only notices that its connection to the first rank breaks.
TEST_F(FailureTest, AModelThatIsDamagedIsBlamedAndNotAConnection) {
  fs::create_directories(Path("model"));
  WriteFile("model/manifest", "no manifest");
  const std::string job = WriteJob(1000);
  for (const char* run : {"a", "b", "c"}) {
    const CommandEnd end = Satrap({"train", job, "--set", "nn_worker.replicas=2", "--init_from",
                                   Path("model"), "--run_dir", Path(run)});
    EXPECT_EQ(end.exit_code, 1);
    EXPECT_THAT(end.err, HasSubstr("the job failed: nn_worker 0: " + Path("model/manifest")));
  }
}

TEST_F(FailureTest, AReportThatCannotBeWrittenIsRefusedBeforeAnythingStarts) {
  const CommandEnd end =
      Satrap({"train", WriteJob(1000), "--report", Path("no/report"), "--run_dir", Path("run")});
  EXPECT_EQ(end.exit_code, 1);
  EXPECT_THAT(end.err, HasSubstr("cannot write " + Path("no/report")));
  EXPECT_NE(access(Path("run").c_str(), F_OK), 0) << "no run folder was made";
}

// /dev/full can be opened; only writes to it fail.
TEST_F(FailureTest, AReportThatIsNotWrittenIsPrinted) {
  const CommandEnd end =
      Satrap({"train", WriteJob(1000), "--report", "/dev/full", "--run_dir", Path("run")});
  EXPECT_EQ(end.exit_code, 1);
  EXPECT_THAT(end.out, HasSubstr("trained      1,000 samples"));
  EXPECT_THAT(end.err, HasSubstr("satrap: cannot write /dev/full: No space left"));
  EXPECT_TRUE(fs::exists(Path("run/report.json")));
}

TEST_F(FailureTest, AnOutputThatIsAnInputIsRefusedBeforeAnythingStarts) {
  const std::string job = WriteFile("csv.textproto", kCsvJob);
  std::string rows;
  for (int i = 0; i < 100; ++i) absl::StrAppend(&rows, "1,a\n0,b\n");
  const std::string train = WriteFile("train.csv", rows);
  const std::string before = ReadFile(job);
  for (const std::string& report : {job, train}) {
    const CommandEnd end = Satrap(
        {"train", job, "--set", "data_root=" + dir_, "--report", report, "--run_dir", Path("run")});
    EXPECT_EQ(end.exit_code, 1);
    EXPECT_THAT(end.err, HasSubstr("cannot write " + report + ": it is "));
    EXPECT_NE(access(Path("run").c_str(), F_OK), 0) << "no run folder was made";
  }
  ASSERT_EQ(
      Satrap({"train", job, "--set", "data_root=" + dir_, "--run_dir", Path("run")}).exit_code, 0);
  const std::string score = WriteFile("score.csv", "1,a\n0,b\n");
  const CommandEnd over = Satrap({"predict", Path("run"), score, "--output_file", score});
  EXPECT_EQ(over.exit_code, 1);
  EXPECT_THAT(over.err, HasSubstr("cannot write " + score + ": it is a data file"));
  EXPECT_EQ(ReadFile(score), "1,a\n0,b\n");
  EXPECT_EQ(ReadFile(job), before);
  EXPECT_EQ(ReadFile(train), rows);
  const CommandEnd full = Satrap({"predict", Path("run"), score, "--output_file", "/dev/full",
                                  "--run_dir", Path("prediction")});
  EXPECT_EQ(full.exit_code, 1);
  EXPECT_THAT(full.err, HasSubstr("cannot write /dev/full: No space left"));
}

TEST_F(FailureTest, AFolderWhoseRunCouldNotBeginIsFree) {
  const std::string job = WriteJob(1000);
  Command command;
  {
    const SmallDisk disk(512);  // less than the job's text has
    command = StartSatrap({"train", job, "--run_dir", Path("run")});
  }
  const CommandEnd end = WaitFor(command, kSecondsToEnd);
  EXPECT_EQ(end.exit_code, 1);
  EXPECT_THAT(end.err, HasSubstr("cannot write " + Path("run/job.textproto") + ": File too large"));
  EXPECT_FALSE(fs::exists(Path("run/job.textproto")));
  const CommandEnd again = Satrap({"train", job, "--run_dir", Path("run")});
  EXPECT_EQ(again.exit_code, 0) << again.err;
}

TEST_F(FailureTest, AWrongJobFileIsRefusedWithLineAndColumn) {
  const std::string job = WriteFile("wrong.textproto", "name: \"x\"\nepocs: 3\n");
  const CommandEnd end = Satrap({"train", job});
  EXPECT_EQ(end.exit_code, 1);
  EXPECT_THAT(end.err, AllOf(HasSubstr("wrong.textproto:2"), HasSubstr("epocs"),
                             HasSubstr("did you mean epochs?")));
  const CommandEnd set = Satrap({"train", "demo", "--set", "epocs=3"});
  EXPECT_EQ(set.exit_code, 1);
  EXPECT_THAT(set.err, HasSubstr("did you mean epochs?"));
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
      Satrap({"train", "adult_fm", "--set", "data_root=" + Path(""), "--run_dir", Path("run")});
  EXPECT_EQ(end.exit_code, 1);
  EXPECT_THAT(end.err, AllOf(HasSubstr(Path("adult.data")), HasSubstr(Path("adult.test"))));
  EXPECT_NE(access(Path("run").c_str(), F_OK), 0) << "no run folder was made";
}

TEST_F(FailureTest, ARunFolderThatCannotBeMadeIsNamed) {
  const std::string job = WriteJob(1000);
  WriteFile("occupied", "");
  const CommandEnd end = Satrap({"train", job, "--run_dir", Path("occupied/run")});
  EXPECT_EQ(end.exit_code, 1);
  EXPECT_THAT(end.err, HasSubstr("occupied/run"));
}

// What goes wrong in the cluster is tested in deploy/submit/command/submit_failure_test.cc.
TEST_F(FailureTest, WhatASubmitCannotBeginWithIsRefusedInOneLine) {
  const std::string section =
      "kubernetes { image: 'satrap:1' volumes { claim: 'runs' mount_path: '/runs' } "
      "embedding_ps { memory: '2Gi' } }";
  const std::string job = WriteJob(1000, section);
  const auto submit = [&](const std::vector<std::string>& args) {
    // With this PATH the command finds only a kubectl in the test's folder.
    std::vector<std::string> all = {"env", "PATH=" + dir_, ProgramPath("deploy/satrap_cli"),
                                    "--install_dir=.", "submit"};
    all.insert(all.end(), args.begin(), args.end());
    const CommandEnd end = WaitFor(StartProgram(all), kSecondsToEnd);
    EXPECT_EQ(end.exit_code, 1) << end.err;
    EXPECT_EQ(std::count(end.err.begin(), end.err.end(), '\n'), 2)
        << "the other one says how much memory cuts may need: " << end.err;
    return end.err;
  };
  EXPECT_THAT(submit({job}), HasSubstr("satrap: there is no kubectl on the PATH: install it"));
  WriteFile("kubectl", "#!/bin/bash\necho 'The connection was refused' >&2\nexit 1\n");
  fs::permissions(Path("kubectl"), fs::perms::owner_all);
  EXPECT_THAT(submit({job}), AllOf(HasSubstr("The connection was refused"),
                                   HasSubstr("the cluster of your context does not answer")));
  const CommandEnd name =
      WaitFor(StartSatrap({"submit", job, "--name", std::string(60, 'a')}), kSecondsToEnd);
  EXPECT_EQ(name.exit_code, 1);
  EXPECT_THAT(name.err, AllOf(HasSubstr("must have at most 35"), HasSubstr("by --name")));
  const CommandEnd wrong =
      WaitFor(StartSatrap({"submit", job, "--set", "kubernetes.imag=x"}), kSecondsToEnd);
  EXPECT_EQ(wrong.exit_code, 1);
  EXPECT_THAT(wrong.err, HasSubstr("kubernetes.imag"));
}

// Coordinators that are started without a launcher, from a resolved job.
class LooseCoordinatorTest : public FailureTest {
 protected:
  // The job of a run in the folder `run`.
  std::string ResolvedJob(const std::string& run) {
    const CommandEnd end = Satrap({"validate", WriteJob(1000)});
    EXPECT_EQ(end.exit_code, 0) << end.err;
    fs::create_directories(Path(run));
    return WriteFile(run + "/job.textproto",
                     absl::StrCat(end.out, "run_dir: \"", Path(run), "\"\n"));
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

TEST_F(LooseCoordinatorTest, ASocketOrPortInUseIsRefused) {
  int runs = 0;
  for (const std::string& address : {"unix:" + Path("socket"), std::string("127.0.0.1:0")}) {
    const Command first = StartCoordinator(ResolvedJob(absl::StrCat("run", runs++)), address);
    ASSERT_TRUE(Listens(first)) << ReadFile(first.err_path);
    // The address at which the first coordinator listens, with the port that the system chose.
    const std::string log = ReadFile(first.err_path);
    const size_t at = log.find("address=") + std::string("address=").size();
    const std::string taken = log.substr(at, log.find_first_of(" \n", at) - at);
    const CommandEnd second =
        WaitFor(StartCoordinator(ResolvedJob(absl::StrCat("run", runs++)), taken), kSecondsToEnd);
    EXPECT_EQ(second.exit_code, 1) << taken;
    EXPECT_THAT(second.err, HasSubstr(taken.substr(taken.find(':') + 1)));
    SendSignal(first.pid, SIGINT);
    WaitFor(first, kSecondsToEnd);
  }
}

}  // namespace
}  // namespace satrap
