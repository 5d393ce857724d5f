// Tests how the coordinator's process exits during one of its file operations, and its signs of
// life (common/life/life_sign.h).

#include <fcntl.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/config/job_config.h"
#include "common/config/testing/validation_check.h"
#include "common/refusal/refusal.h"
#include "common/role/coordinator_client.h"
#include "common/rpc/grpc_channel.h"
#include "gmock/gmock.h"
#include "tests/integration/run_fixture.h"

namespace satrap {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class CoordinatorExitTest : public RunFixture {
 protected:
  // Starts the coordinator of a run, and waits until it opens the folder that holds the run's lists
  // of files. The next file that it opens there is `list_`, a pipe that nobody writes to, so
  // opening this file hangs.
  void StartWithAFileThatHangs() {
    coordinator_ = StartCoordinator(WriteSmallJob());
    auto channel = rpc::GrpcChannel::Create(Address(), rpc::EndpointOptions());
    ASSERT_TRUE(channel.ok()) << channel.status();
    channel_ = *std::move(channel);
    RegisterRequest loader;
    loader.mutable_member()->set_role(DATA_LOADER);
    loader.set_incarnation(1);
    const auto registered =
        CoordinatorClient(channel_.get(), Envelope(), /*timeout_ms=*/30000).Register(loader);
    ASSERT_TRUE(registered.ok()) << registered.status() << ReadFile(coordinator_.err_path);
    ASSERT_EQ(mkdir(Path("run/splits").c_str(), 0755), 0);
    ASSERT_EQ(mkfifo(list_.c_str(), 0600), 0);
    const int watch = inotify_init1(IN_CLOEXEC);
    ASSERT_GE(inotify_add_watch(watch, Path("run/splits").c_str(), IN_OPEN), 0);
    FixSplitsRequest request;
    *request.mutable_envelope() = registered->envelope();
    rpc::Message message;
    message.header = request.SerializeAsString();
    channel_->Call(kFixSplits, std::move(message), /*timeout_ms=*/60000,
                   [](const absl::StatusOr<rpc::Message>&) {});
    pollfd waited = {watch, POLLIN, 0};
    EXPECT_EQ(poll(&waited, 1, 30000), 1);
    close(watch);
  }
  void SetUp() override {
    RunFixture::SetUp();
    list_ = Path("run/splits/0000000000000000");
  }

  // Writes a resolved job whose run is in Path("run"). Returns the file's path.
  std::string WriteSmallJob() { return WriteJobWithRunIn(Path("run")); }
  std::string WriteJobWithRunIn(const std::string& run_dir, JobConfig job = SmallJob()) {
    job.set_run_dir(run_dir);
    ResolveJob(&job);
    return WriteFile("job.textproto", ResolvedJobText(job));
  }
  std::string Address(const std::string& socket = "coordinator") const {
    return absl::StrCat("unix:", Path(socket));
  }
  Command StartCoordinator(const std::string& config, const std::vector<std::string>& more = {},
                           const std::string& socket = "coordinator") {
    std::vector<std::string> args = {absl::StrCat("--config=", config),
                                     absl::StrCat("--listen=", Address(socket))};
    args.insert(args.end(), more.begin(), more.end());
    return Start("deploy/coordinator/coordinator", args);
  }
  // Sends the signal to the coordinator, which must then exit with `exit_code` (-1: by the signal).
  void EndBySignal(const Command& coordinator, int signal, int exit_code) {
    SendSignal(coordinator.pid, signal);
    EXPECT_EQ(WaitFor(coordinator, 30).exit_code, exit_code) << ReadFile(coordinator.err_path);
  }
  // Starts a coordinator with the job in the file `config` and a pipe for signs of life.
  void StartWithAPipe(const std::string& config, const std::vector<std::string>& more = {}) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    std::vector<std::string> args = {absl::StrCat("--alive=", ends[1])};
    args.insert(args.end(), more.begin(), more.end());
    coordinator_ = StartCoordinator(config, args);
    close(ends[1]);
    signs_ = ends[0];
  }
  // Waits until a coordinator has logged these words.
  bool WaitForWords(const Command& coordinator, const std::string& words) const {
    return WaitUntil([&] { return absl::StrContains(ReadFile(coordinator.err_path), words); }, 30);
  }
  // Reads the signs of life that are in the pipe already.
  void TakeOldSigns() const {
    pollfd waited = {signs_, POLLIN, 0};
    while (poll(&waited, 1, 0) == 1) ASSERT_TRUE(TakeSigns(1));
  }
  // Reads `count` signs. Returns false if one of them does not come within 30 s.
  bool TakeSigns(int count) const {
    for (int i = 0; i < count; ++i) {
      pollfd waited = {signs_, POLLIN, 0};
      char sign;
      if (poll(&waited, 1, 30000) != 1 || read(signs_, &sign, 1) != 1) return false;
    }
    return true;
  }
  // Starts the coordinator of a submission, and waits for its first status.
  StatusAnswer StartSubmission(const std::string& config, int submission) {
    coordinator_ = StartCoordinator(config, {absl::StrCat("--submission=", submission)});
    absl::StatusOr<StatusAnswer> status = absl::UnknownError("not asked");
    WaitUntil(
        [&] {
          auto channel = rpc::GrpcChannel::Create(Address(), rpc::EndpointOptions());
          if (!channel.ok()) return false;
          channel_ = *std::move(channel);
          status = CoordinatorClient(channel_.get(), Envelope(), /*timeout_ms=*/1000).Status();
          return status.ok();
        },
        30);
    EXPECT_TRUE(status.ok()) << status.status() << ReadFile(coordinator_.err_path);
    return status.ok() ? *status : StatusAnswer();
  }
  void TearDown() override {
    if (signs_ >= 0) close(signs_);
    RunFixture::TearDown();
  }

  int signs_ = -1;
  Command coordinator_;
  std::unique_ptr<rpc::GrpcChannel> channel_;
  std::string list_;
};

TEST_F(CoordinatorExitTest, ItDoesNotWaitForAFileOperationThatDoesNotReturn) {
  ASSERT_NO_FATAL_FAILURE(StartWithAFileThatHangs());
  SendSignal(coordinator_.pid, SIGINT);
  const CommandEnd end = WaitFor(coordinator_, 30);
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.err, HasSubstr("still in progress"));
}

TEST_F(CoordinatorExitTest, ItWaitsAMomentForOneThatDoes) {
  ASSERT_NO_FATAL_FAILURE(StartWithAFileThatHangs());
  SendSignal(coordinator_.pid, SIGINT);
  ASSERT_TRUE(WaitUntil(
      [this] {
        return absl::StrContains(ReadFile(coordinator_.err_path), "waiting for file work");
      },
      30));
  close(open(list_.c_str(), O_WRONLY | O_NONBLOCK));
  const CommandEnd end = WaitFor(coordinator_, 30);
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.err, Not(HasSubstr("still in progress")));
}

TEST_F(CoordinatorExitTest, ItGivesSignsOfLifeWhileItClaimsAGeneration) {
  // The coordinator's attempt to open this pipe blocks until somebody opens it for writing.
  ASSERT_EQ(mkfifo(Path("job.textproto").c_str(), 0600), 0);
  ASSERT_NO_FATAL_FAILURE(StartWithAPipe(Path("job.textproto")));
  EXPECT_TRUE(TakeSigns(3)) << ReadFile(coordinator_.err_path);
  EndBySignal(coordinator_, SIGKILL, -1);
}

TEST_F(CoordinatorExitTest, ItGivesSignsOfLifeWhileItServes) {
  ASSERT_NO_FATAL_FAILURE(StartWithAPipe(WriteSmallJob()));
  ASSERT_TRUE(WaitForWords(coordinator_, "waiting for members"));
  TakeOldSigns();
  EXPECT_TRUE(TakeSigns(3));
  EndBySignal(coordinator_, SIGINT, 0);
}

TEST_F(CoordinatorExitTest, ItGivesSignsOfLifeWhileALaterSubmissionHasTheRun) {
  const std::string config = WriteSmallJob();
  const Command later = StartCoordinator(config, {"--submission=2"}, "later");
  ASSERT_TRUE(WaitForWords(later, "waiting for members"));
  EndBySignal(later, SIGKILL, -1);
  ASSERT_NO_FATAL_FAILURE(StartWithAPipe(config, {"--submission=1"}));
  ASSERT_TRUE(WaitForWords(coordinator_, "submission 2 has taken over the run"));
  TakeOldSigns();
  EXPECT_TRUE(TakeSigns(3));
  EndBySignal(coordinator_, SIGTERM, 0);
}

TEST_F(CoordinatorExitTest, ItGivesSignsOfLifeWhileItServesItsRefusal) {
  ASSERT_NO_FATAL_FAILURE(StartWithAPipe(WriteJobWithRunIn("/proc/run"), {"--submission=1"}));
  ASSERT_TRUE(WaitForWords(coordinator_, "claims no generation"));
  TakeOldSigns();
  EXPECT_TRUE(TakeSigns(3));
  EndBySignal(coordinator_, SIGTERM, 1);
}

TEST_F(CoordinatorExitTest, AStoppedSubmissionStaysStoppedUntilTheNextOneBegins) {
  const std::string config = WriteSmallJob();
  const StatusAnswer first = StartSubmission(config, 1);
  EXPECT_EQ(first.state(), STARTING);
  EXPECT_EQ(first.generation(), 1u);
  WishRequest stop;
  stop.set_run_id(first.run_id());
  stop.set_kind(WishRequest::STOP);
  const auto wished = CoordinatorClient(channel_.get(), Envelope(), 30000).Wish(stop);
  ASSERT_TRUE(wished.ok()) << wished.status();
  ASSERT_TRUE(WaitForWords(coordinator_, "STOPPED"));
  EndBySignal(coordinator_, SIGTERM, 0);
  // Kubernetes starts the same submission again in this way.
  const StatusAnswer again = StartSubmission(config, 1);
  EXPECT_EQ(again.state(), STOPPED);
  EXPECT_EQ(again.generation(), 1u) << "it claims nothing";
  EndBySignal(coordinator_, SIGTERM, 0);
  const StatusAnswer next = StartSubmission(config, 2);
  EXPECT_EQ(next.state(), STARTING);
  EXPECT_EQ(next.generation(), 2u);
  EXPECT_EQ(next.run_id(), first.run_id());
  EndBySignal(coordinator_, SIGKILL, -1);
}

// The Jobs of the run may begin to wait for the coordinator after the coordinator has refused.
TEST_F(CoordinatorExitTest, ItLeavesItsRefusalForThoseWhoBeginToWaitLater) {
  const std::string config = WriteSmallJob();
  ASSERT_EQ(mkdir(Path("run").c_str(), 0755), 0);
  coordinator_ = StartCoordinator(config, {"--submission=2", "--from=no_such_cut"});
  ASSERT_TRUE(WaitForWords(coordinator_, "claims no generation"))
      << ReadFile(coordinator_.err_path);
  for (int waiter = 0; waiter < 2; ++waiter) {
    const RefusalWatch watch(Path("run"), 2);
    ASSERT_TRUE(WaitUntil([&] { return watch.New().has_value(); }, 30));
    EXPECT_THAT(watch.New()->text(), HasSubstr("no_such_cut"));
  }
  EndBySignal(coordinator_, SIGTERM, 1);
}

// Only pods see the volumes, so the command that submitted the job could not look for the job's
// files.
TEST_F(CoordinatorExitTest, ItRefusesAJobWhoseFilesAreMissingAndBeginsItWhenTheyAreThere) {
  const std::string config =
      WriteJobWithRunIn(Path("run"), JobWithData(absl::StrCat(R"(
      csv {
        columns { name: 'y' kind: LABEL }
        columns { name: 'C1' kind: ID }
        columns { name: 'C2' kind: ID }
        columns { name: 'I1' kind: NUMERIC }
      }
      train_files: ')",
                                                              Path("clicks_*.csv"), R"('
      features { name: 'C1' table: 'ids' }
      features { name: 'C2' table: 'ids' }
      numerics { name: 'I1' })")));
  const RefusalWatch watch(Path("run"), 1);
  coordinator_ = StartCoordinator(config, {"--submission=1"});
  ASSERT_TRUE(WaitUntil([&] { return watch.New().has_value(); }, 30))
      << ReadFile(coordinator_.err_path);
  EXPECT_THAT(watch.New()->text(),
              HasSubstr("data.train_files: no file matches " + Path("clicks_*.csv")));
  EXPECT_FALSE(std::filesystem::exists(Path("run/log/00000001"))) << "it claims nothing";
  EndBySignal(coordinator_, SIGTERM, 1);
  WriteFile("clicks_1.csv", "1,a,b,0.5\n");
  EXPECT_EQ(StartSubmission(config, 1).generation(), 1u);
  EndBySignal(coordinator_, SIGKILL, -1);
}

// A storage system may return wrong bytes, for good or for a moment.
TEST_F(CoordinatorExitTest, ItRefusesALogThatStaysDamagedAndNotOneThatIsMended) {
  const std::string config = WriteSmallJob();
  const StatusAnswer first = StartSubmission(config, 1);
  EXPECT_EQ(first.generation(), 1u);
  EndBySignal(coordinator_, SIGKILL, -1);
  const std::string entry = Path("run/log/00000001");
  const std::string bytes = ReadFile(entry);
  const auto damage = [&] { std::ofstream(entry, std::ios::trunc) << "damaged"; };
  damage();
  coordinator_ = StartCoordinator(config, {"--submission=1"});
  ASSERT_TRUE(WaitForWords(coordinator_, "is tried once more")) << ReadFile(coordinator_.err_path);
  std::ofstream(entry, std::ios::trunc) << bytes;
  ASSERT_TRUE(WaitForWords(coordinator_, "waiting for members"));
  EndBySignal(coordinator_, SIGKILL, -1);

  damage();
  const RefusalWatch watch(Path("run"), 1);
  coordinator_ = StartCoordinator(config, {"--submission=1"});
  ASSERT_TRUE(WaitUntil([&] { return watch.New().has_value(); }, 30));
  EXPECT_THAT(watch.New()->text(), HasSubstr("00000001"));
  EndBySignal(coordinator_, SIGTERM, 1);
}

TEST_F(CoordinatorExitTest, AFileSystemThatCannotHoldARunIsNamedInOneLineBeforeAnythingBegins) {
  const CommandEnd end = WaitFor(StartCoordinator(WriteJobWithRunIn("/proc/run")), 30);
  EXPECT_EQ(end.exit_code, 1);
  EXPECT_THAT(end.err, AllOf(HasSubstr("error: run_dir /proc/run cannot be used"),
                             HasSubstr("`mkdir` does not work on its file system (proc): "),
                             HasSubstr("NFS 4")));
  EXPECT_EQ(std::count(end.err.begin(), end.err.end(), '\n'), 1) << end.err;
}

}  // namespace
}  // namespace satrap
