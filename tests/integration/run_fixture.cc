#include "tests/integration/run_fixture.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/substitute.h"

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

double NowSeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The build's folder of programs lies where this test's own program does: DIR/tests/integration.
std::string ProgramsDir() {
  return fs::read_symlink("/proc/self/exe").parent_path().parent_path().parent_path().string();
}

}  // namespace

void RunFixture::SetUp() {
  // Short, because a path of a socket may not be longer than 107 bytes.
  dir_ = (fs::temp_directory_path() / "satrap_run.XXXXXX").string();
  ASSERT_NE(mkdtemp(dir_.data()), nullptr);
}

void RunFixture::TearDown() {
  for (const pid_t pid : ProcessesWith(dir_)) kill(pid, SIGKILL);
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

Command RunFixture::Start(const std::string& program, const std::vector<std::string>& args) {
  Command command;
  const std::string base = Path(absl::StrCat("command_", num_commands_++));
  command.out_path = base + ".out";
  command.err_path = base + ".err";
  std::vector<std::string> all = {absl::StrCat(ProgramsDir(), "/", program)};
  all.insert(all.end(), args.begin(), args.end());
  std::vector<char*> argv;
  for (std::string& arg : all) argv.push_back(arg.data());
  argv.push_back(nullptr);
  command.pid = fork();
  if (command.pid == 0) {
    const int out = open(command.out_path.c_str(), O_WRONLY | O_CREAT, 0644);
    const int err = open(command.err_path.c_str(), O_WRONLY | O_CREAT, 0644);
    dup2(out, 1);
    dup2(err, 2);
    execv(argv[0], argv.data());
    _exit(127);
  }
  return command;
}

Command RunFixture::StartSatrap(const std::vector<std::string>& args) {
  std::vector<std::string> all = {"--install_dir=."};
  all.insert(all.end(), args.begin(), args.end());
  return Start("deploy/satrap_cli", all);
}

CommandEnd RunFixture::WaitFor(const Command& command, double patience_s) {
  const double start = NowSeconds();
  int status = 0;
  const bool ended =
      WaitUntil([&] { return waitpid(command.pid, &status, WNOHANG) == command.pid; }, patience_s);
  CommandEnd end;
  end.seconds = NowSeconds() - start;
  if (!ended) {
    kill(command.pid, SIGKILL);
    waitpid(command.pid, &status, 0);
    ADD_FAILURE() << "still running after " << patience_s << " s";
  }
  if (WIFEXITED(status)) end.exit_code = WEXITSTATUS(status);
  end.out = ReadFile(command.out_path);
  end.err = ReadFile(command.err_path);
  return end;
}

CommandEnd RunFixture::Satrap(const std::vector<std::string>& args) {
  return WaitFor(StartSatrap(args));
}

std::vector<pid_t> RunFixture::ProcessesWith(const std::string& text) {
  std::vector<pid_t> pids;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc", error)) {
    pid_t pid;
    if (!absl::SimpleAtoi(entry.path().filename().string(), &pid) || pid == getpid()) continue;
    if (absl::StrContains(ReadFile(entry.path().string() + "/cmdline"), text)) pids.push_back(pid);
  }
  return pids;
}

bool RunFixture::WaitUntil(const std::function<bool()>& done, double patience_s) {
  const double deadline = NowSeconds() + patience_s;
  while (!done()) {
    if (NowSeconds() > deadline) return false;
    usleep(20 * 1000);
  }
  return true;
}

bool RunFixture::WaitUntilTraining(const std::string& run_dir) {
  return WaitUntil(
      [&] {
        const std::string lines = ReadFile(run_dir + "/metrics.jsonl");
        return std::count(lines.begin(), lines.end(), '\n') >= 2;
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

}  // namespace satrap
