#include "deploy/cli/chaos/chaos_killer.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/checkpoint/run_log.h"
#include "common/role/role_flags.h"
#include "common/thread/clock.h"
#include "deploy/launcher/process/run_progress.h"

namespace satrap {
namespace {

namespace fs = std::filesystem;

// The interval at which the killer looks for processes and cuts.
constexpr int64_t kPollMs = 20;

std::string LogName(const ChaosEvent& event) {
  return absl::StrCat(RoleName(event.role), "_", event.index);
}

// The name of process `pid`, taken from the name of the log file that is its standard output; empty
// if it is not a process of the run.
std::string NameOf(const std::string& logs_dir, const std::string& pid) {
  std::error_code error;
  const fs::path output = fs::read_symlink(absl::StrCat("/proc/", pid, "/fd/1"), error);
  if (error || output.parent_path() != logs_dir || output.extension() != ".log") return "";
  return output.stem().string();
}

// Sends SIGKILL, but only if the process is still the one that was found: its pid may have been
// reused.
bool Kill(const std::string& logs_dir, const RunProcess& process) {
  const int fd = static_cast<int>(syscall(SYS_pidfd_open, process.pid, 0));
  if (fd < 0) return false;
  const bool same = NameOf(logs_dir, absl::StrCat(process.pid)) == process.name;
  const bool killed = same && syscall(SYS_pidfd_send_signal, fd, SIGKILL, nullptr, 0) == 0;
  close(fd);
  return killed;
}

std::string LogsDir(const std::string& run_dir) {
  std::error_code error;
  return (fs::weakly_canonical(run_dir, error) / "logs").string();
}

}  // namespace

std::vector<RunProcess> ProcessesOf(const std::string& run_dir) {
  const std::string logs_dir = LogsDir(run_dir);
  std::vector<RunProcess> processes;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc", error)) {
    const std::string pid = entry.path().filename().string();
    RunProcess process;
    if (!absl::SimpleAtoi(pid, &process.pid)) continue;
    process.name = NameOf(logs_dir, pid);
    if (!process.name.empty()) processes.push_back(std::move(process));
  }
  return processes;
}

ChaosKiller::ChaosKiller(Options options)
    : options_(std::move(options)), thread_([this] { Run(); }) {}

ChaosKiller::~ChaosKiller() { Stop(); }

void ChaosKiller::Stop() {
  {
    MutexLock lock(&mutex_);
    stopped_ = true;
    changed_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
}

bool ChaosKiller::Wait(double seconds) {
  const double end_s = MonotonicSeconds() + seconds;
  MutexLock lock(&mutex_);
  while (!stopped_) {
    const double left_s = end_s - MonotonicSeconds();
    if (left_s <= 0) return true;
    changed_.WaitForUs(&mutex_, static_cast<int64_t>(left_s * 1e6) + 1);
  }
  return false;
}

bool ChaosKiller::WaitUntil(const std::function<bool()>& done) {
  do {
    if (done()) return true;
  } while (Wait(static_cast<double>(kPollMs) * 1e-3));
  return false;
}

void ChaosKiller::Run() {
  const bool has_cut = WaitUntil([this] {
    const absl::StatusOr<RunProgress> progress = ReadRunProgress(options_.run_dir);
    return progress.ok() && progress->cut.has_value();
  });
  if (!has_cut) return;
  for (const ChaosEvent& event : options_.kills) {
    // The launcher may pause before it starts the next processes. The wait begins after that pause,
    // because otherwise every kill would come right after the start.
    if (!WaitUntil([this] { return HasNextLife(); }) || !Wait(event.wait_seconds)) return;
    // In a run that has finished, the processes end by themselves, so there is nothing to kill.
    const absl::StatusOr<RunProgress> progress = ReadRunProgress(options_.run_dir);
    if (progress.ok() && progress->result.has_value()) return;
    if (!WaitUntil([&] { return KillOne(event); })) return;
    ++kills_;
    options_.tell(
        absl::StrFormat("kill %d, after %.2f s: %s", kills_, event.wait_seconds, ChaosText(event)));
    Verify();
  }
}

bool ChaosKiller::HasNextLife() const {
  for (const RunProcess& process : ProcessesOf(options_.run_dir)) {
    if (ended_.count(process.pid) == 0) return true;
  }
  return false;
}

bool ChaosKiller::KillOne(const ChaosEvent& event) {
  const std::vector<RunProcess> processes = ProcessesOf(options_.run_dir);
  for (const RunProcess& process : processes) {
    if (process.name != LogName(event) || ended_.count(process.pid) > 0) continue;
    if (!Kill(LogsDir(options_.run_dir), process)) return false;
    ended_.clear();
    for (const RunProcess& each : processes) ended_.insert(each.pid);
    return true;
  }
  return false;
}

void ChaosKiller::Verify() {
  std::string cut;
  absl::Status status;
  // If the cut cannot be verified because the commit of a newer one removed it (checkpoint.keep),
  // verify the newer one.
  while (true) {
    const absl::StatusOr<RunProgress> progress = ReadRunProgress(options_.run_dir);
    if (!progress.ok() || !progress->cut.has_value()) {
      absl::StrAppend(&problems_, "\n  after kill ", kills_, ": ",
                      progress.ok() ? "there is no cut" : progress.status().message());
      return;
    }
    if (progress->cut->cut() == cut) break;
    cut = progress->cut->cut();
    status = options_.verify(FolderOfCut(options_.run_dir, cut));
    if (status.ok()) break;
  }
  if (status.ok()) {
    ++verified_cuts_;
  } else {
    absl::StrAppend(&problems_, "\n  after kill ", kills_, ": ", status.message());
  }
}

}  // namespace satrap
