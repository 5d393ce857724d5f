#include "tests/integration/run_fixture.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/substitute.h"
#include "common/base/check.h"
#include "common/thread/clock.h"

namespace satrap {
namespace {

namespace fs = std::filesystem;

constexpr char kJob[] = R"(
name: "tiny"
global_batch_size: 256
max_staleness: 2
data {
  numerics { name: "I1" }
  numerics { name: "I2" }
  features { name: "C1" table: "rows" }
  features { name: "C2" table: "rows" }
  features { name: "C3" table: "rows" }
  split_rows: 1024
  synthetic {
    train_samples: $0
    valid_samples: 2000
    test_samples: 4000
    numeric_features: 2
    vocabulary_sizes: [ 20, 20, 100 ]
    interacting_features: 2
  }
}
tables {
  name: "rows"
  id: 0
  segments { name: "embedding" dim: 4 optimizer { learning_rate: 0.1 adagrad {} } }
  segments { name: "linear" dim: 1 optimizer { learning_rate: 0.1 adagrad {} } }
}
model {
  layers { name: "linear" inputs: "*.linear" sum {} }
  layers { name: "pairs" inputs: "*.embedding" fm {} }
  layers {
    name: "deep"
    inputs: [ "*.embedding", "numeric" ]
    mlp { units: 8 output_units: 1 }
  }
  layers { name: "logit" inputs: [ "linear", "pairs", "deep" ] add {} }
}
dense_optimizer { learning_rate: 0.01 adam {} }
data_loader { replicas: 1 }
embedding_worker { replicas: 2 }
embedding_ps { replicas: 2 }
nn_worker { replicas: 2 }
)";

// Waits until `fd` can be read; false at `deadline_ms`.
bool WaitReadable(int fd, int64_t deadline_ms) {
  pollfd waited = {fd, POLLIN, 0};
  const int64_t left_ms = std::max<int64_t>(deadline_ms - MonotonicMs(), 0);
  return poll(&waited, 1, static_cast<int>(left_ms)) == 1;
}

// Waits until a process has ended, whether or not it has been reaped; false at `deadline_ms`.
bool WaitForProcess(pid_t pid, int64_t deadline_ms) {
  const int fd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  if (fd < 0) return errno == ESRCH;
  const bool ended = WaitReadable(fd, deadline_ms);
  close(fd);
  return ended;
}

// Reports changes anywhere below a folder.
class FolderWatch {
 public:
  explicit FolderWatch(const std::string& root)
      : root_(root), fd_(inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
    EXPECT_GE(fd_, 0);
  }
  ~FolderWatch() { close(fd_); }

  // Starts watching the folders that exist now. A later change in them ends a Wait. Nothing is
  // missed in a folder that is made later, because making the folder is itself a change.
  void TakeIn() {
    Add(root_);
    std::error_code error;
    for (fs::recursive_directory_iterator it(root_, error), end; !error && it != end;
         it.increment(error)) {
      if (it->symlink_status(error).type() == fs::file_type::directory) Add(it->path().string());
    }
  }
  // Waits for a change; false at `deadline_ms`.
  bool Wait(int64_t deadline_ms) {
    if (!WaitReadable(fd_, deadline_ms)) return false;
    char events[4096];
    while (read(fd_, events, sizeof(events)) > 0) continue;
    return true;
  }

 private:
  // Fails for a folder that has been removed, but such a folder needs no watch.
  void Add(const std::string& folder) {
    inotify_add_watch(fd_, folder.c_str(),
                      IN_CREATE | IN_DELETE | IN_MODIFY | IN_MOVED_FROM | IN_MOVED_TO);
  }

  const std::string root_;
  const int fd_;
};

int64_t DeadlineMs(double timeout_s) {
  return MonotonicMs() + static_cast<int64_t>(timeout_s * 1000);
}

// The folder DIR of the build's programs: the program of this test is DIR/tests/integration/NAME.
std::string ProgramsDir() {
  return fs::read_symlink("/proc/self/exe").parent_path().parent_path().parent_path().string();
}

// The processes whose standard output is a file for which `is_wanted` is true.
std::vector<pid_t> ProcessesWritingTo(const std::function<bool(const std::string&)>& is_wanted) {
  std::vector<pid_t> pids;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc", error)) {
    pid_t pid;
    if (!absl::SimpleAtoi(entry.path().filename().string(), &pid) || pid == getpid()) continue;
    std::error_code gone;
    const fs::path output = fs::read_symlink(entry.path() / "fd/1", gone);
    if (!gone && is_wanted(output.string())) pids.push_back(pid);
  }
  return pids;
}

// Empty if the process has ended, or ends while its file is read. Neither case throws an exception
// here.
std::string CommandLineOf(pid_t pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/cmdline"), std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

int SendSignal(pid_t pid, int signal) {
  CHECK(pid > 0) << pid;
  return kill(pid, signal);
}

void RunFixture::SetUp() {
  // Short, because a socket's path must not exceed 107 bytes.
  dir_ = (fs::temp_directory_path() / "satrap_run.XXXXXX").string();
  ASSERT_NE(mkdtemp(dir_.data()), nullptr);
}

void RunFixture::TearDown() {
  // A test that was skipped before SetUp has no folder.
  if (dir_.empty()) return;
  for (const pid_t pid : ProcessesWith(dir_)) SendSignal(pid, SIGKILL);
  std::error_code error;
  fs::remove_all(dir_, error);
}

std::string RunFixture::WriteFile(const std::string& name, const std::string& text) {
  std::ofstream(Path(name)) << text;
  return Path(name);
}

std::string RunFixture::WriteJob(int64_t train_samples, const std::string& more) {
  return WriteFile("tiny.textproto",
                   absl::StrCat(absl::Substitute(kJob, train_samples), more, "\n"));
}

std::string RunFixture::ProgramPath(const std::string& program) {
  return absl::StrCat(ProgramsDir(), "/", program);
}

Command RunFixture::Start(const std::string& program, const std::vector<std::string>& args) {
  std::vector<std::string> all = {ProgramPath(program)};
  all.insert(all.end(), args.begin(), args.end());
  return StartProgram(all);
}

Command RunFixture::StartProgram(const std::vector<std::string>& args) {
  Command command;
  const std::string base = Path(absl::StrCat("command_", num_commands_++));
  command.out_path = base + ".out";
  command.err_path = base + ".err";
  std::vector<std::string> all = args;
  std::vector<char*> argv;
  for (std::string& arg : all) argv.push_back(arg.data());
  argv.push_back(nullptr);
  command.pid = fork();
  if (command.pid == 0) {
    const int out = open(command.out_path.c_str(), O_WRONLY | O_CREAT, 0644);
    const int err = open(command.err_path.c_str(), O_WRONLY | O_CREAT, 0644);
    dup2(out, 1);
    dup2(err, 2);
    execvp(argv[0], argv.data());
    _exit(127);
  }
  return command;
}

Command RunFixture::StartSatrap(const std::vector<std::string>& args) {
  std::vector<std::string> all = {"--install_dir=."};
  all.insert(all.end(), args.begin(), args.end());
  return Start("deploy/satrap_cli", all);
}

CommandEnd RunFixture::WaitFor(const Command& command, double timeout_s) {
  const double start_s = MonotonicSeconds();
  CommandEnd end;
  if (!WaitForProcess(command.pid, DeadlineMs(timeout_s))) {
    SendSignal(command.pid, SIGKILL);
    ADD_FAILURE() << "still running after " << timeout_s << " s";
  }
  int status = 0;
  waitpid(command.pid, &status, 0);
  end.seconds = MonotonicSeconds() - start_s;
  if (WIFEXITED(status)) end.exit_code = WEXITSTATUS(status);
  end.out = ReadFile(command.out_path);
  end.err = ReadFile(command.err_path);
  return end;
}

CommandEnd RunFixture::Satrap(const std::vector<std::string>& args) {
  return WaitFor(StartSatrap(args));
}

std::vector<pid_t> RunFixture::ProcessesWith(const std::string& text) {
  // Every command line contains the empty text, and callers may kill the processes that they get.
  CHECK(!text.empty());
  std::vector<pid_t> pids;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc", error)) {
    pid_t pid;
    if (!absl::SimpleAtoi(entry.path().filename().string(), &pid) || pid == getpid()) continue;
    if (absl::StrContains(CommandLineOf(pid), text)) pids.push_back(pid);
  }
  return pids;
}

bool RunFixture::WaitUntilGone(const std::string& text, double timeout_s) {
  const int64_t deadline_ms = DeadlineMs(timeout_s);
  while (true) {
    const std::vector<pid_t> left = ProcessesWith(text);
    if (left.empty()) return true;
    if (!WaitForProcess(left.front(), deadline_ms)) return false;
  }
}

std::vector<pid_t> RunFixture::RoleProcesses(const std::string& run_dir) {
  const std::string logs = run_dir + "/logs/";
  return ProcessesWritingTo([&](const std::string& file) { return absl::StartsWith(file, logs); });
}

pid_t RunFixture::RoleProcess(const std::string& run_dir, const std::string& role, int index) {
  const std::string log = absl::StrCat(run_dir, "/logs/", role, "_", index, ".log");
  const std::vector<pid_t> found =
      ProcessesWritingTo([&](const std::string& file) { return file == log; });
  return found.empty() ? 0 : found.front();
}

bool RunFixture::WaitUntilOver(const std::string& run_dir, double timeout_s) {
  const int64_t deadline_ms = DeadlineMs(timeout_s);
  while (true) {
    const std::vector<pid_t> left = RoleProcesses(run_dir);
    if (left.empty()) return true;
    if (!WaitForProcess(left.front(), deadline_ms)) return false;
  }
}

bool RunFixture::WaitUntil(const std::function<bool()>& done, double timeout_s) const {
  const int64_t deadline_ms = DeadlineMs(timeout_s);
  FolderWatch watch(dir_);
  while (true) {
    watch.TakeIn();
    if (done()) return true;
    if (!watch.Wait(deadline_ms)) return false;
  }
}

bool RunFixture::WaitUntilTraining(const std::string& run_dir) const {
  return WaitUntil(
      [&] {
        // Rank 0 writes such a line for each second of training, so a short run has none.
        const std::string lines = ReadFile(run_dir + "/metrics.jsonl");
        const size_t at = lines.find("\"event\":\"train\"");
        return at != std::string::npos && lines.find('\n', at) != std::string::npos;
      },
      60);
}

double JsonNumber(const std::string& json, const std::string& key) {
  size_t at = 0;
  for (const absl::string_view name : absl::StrSplit(key, '.')) {
    const std::string quoted = absl::StrCat("\"", name, "\":");
    at = json.find(quoted, at);
    if (at == std::string::npos) return std::numeric_limits<double>::quiet_NaN();
    at += quoted.size();
  }
  char* end = nullptr;
  const double value = strtod(json.c_str() + at, &end);
  return end == json.c_str() + at ? std::numeric_limits<double>::quiet_NaN() : value;
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
}

size_t CountOf(const std::string& text, const std::string& words) {
  size_t count = 0;
  for (size_t at = text.find(words); at != std::string::npos; at = text.find(words, at + 1)) {
    ++count;
  }
  return count;
}

pid_t ParentOf(pid_t pid) {
  const std::string status = ReadFile("/proc/" + std::to_string(pid) + "/status");
  const std::string name = "\nPPid:";
  const size_t at = status.find(name);
  return at == std::string::npos ? 0 : atoi(status.c_str() + at + name.size());
}

}  // namespace satrap
