#include "deploy/launcher/process/generation.h"

#include <poll.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/config/score_on_cpu.h"
#include "common/file/file_history.h"
#include "common/role/role_flags.h"
#include "common/thread/clock.h"
#include "deploy/launcher/process/child_process.h"
#include "deploy/launcher/process/role_program.h"

namespace satrap {
namespace {

// How long killed processes may take to disappear; the kernel must free their memory first.
constexpr int64_t kGoneMs = 60000;
constexpr int64_t kLogPeriodMs = 10000;

constexpr Role kStartOrder[] = {COORDINATOR, EMBEDDING_PS, EMBEDDING_WORKER, DATA_LOADER,
                                NN_WORKER};

}  // namespace

bool RoleProcess::was_killed() const { return ended && WIFSIGNALED(wait_status); }

bool RoleProcess::exited_with(int code) const {
  return ended && WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == code;
}

std::string ShownPath(const std::string& path) {
  std::error_code error;
  const auto relative = std::filesystem::relative(path, error);
  if (error || relative.empty() || absl::StartsWith(relative.string(), "..")) return path;
  return relative.string();
}

Generation::Generation(ProcessStarter* starter, const RunFolder* folder, std::string bin_dir)
    : starter_(starter),
      folder_(folder),
      bin_dir_(std::move(bin_dir)),
      // Ignores errors: on a full disk the log stays as it is.
      log_cutter_(
          [](const std::string& path) { CutForeignFile(path, FileLimits()).IgnoreError(); }) {}

std::string Generation::coordinator_address() const {
  return folder_->SocketAddress(FileNameOf(COORDINATOR, 0));
}

absl::Status Generation::StartOne(const JobConfig& job, Role role, int index, uint64_t number,
                                  const std::vector<std::string>& coordinator_flags) {
  const std::string file_name = FileNameOf(role, index);
  const std::string ending_path = folder_->EndingPath(file_name);
  std::vector<std::string> args = {absl::StrCat(bin_dir_, "/", ProgramOf(role, job)),
                                   absl::StrCat("--ending=", ending_path)};
  if (role == COORDINATOR) {
    args.insert(args.end(), coordinator_flags.begin(), coordinator_flags.end());
  } else {
    args.push_back(absl::StrCat("--role_index=", index));
    args.push_back(absl::StrCat("--coordinator=", coordinator_address()));
  }
  if (role == NN_WORKER) {
    args.push_back("--advertise=127.0.0.1");
    // Rank i uses card i, because all ranks are on this machine.
    if (job.nn_worker().device() == NnWorkerConfig::CUDA) {
      args.push_back(absl::StrCat("--card=", index));
    }
  }
  if (role == EMBEDDING_WORKER || role == EMBEDDING_PS) {
    args.push_back(absl::StrCat("--listen=", folder_->SocketAddress(file_name)));
  }
  const std::string log_path = folder_->LogPath(file_name);
  // Ignore an error: starting the process opens the log, too, and reports it.
  std::ofstream(log_path, std::ios::app) << kGenerationLine << number << " ----\n";
  // Remove the Ending that the previous process has left. If the new process is killed, it may
  // leave none, and then the old Ending would be mistaken for that of the new process.
  std::error_code error;
  std::filesystem::remove(ending_path, error);
  ASSIGN_OR_RETURN(const pid_t pid, starter_->Start(args, log_path));
  processes_.push_back({role, index, MemberName(role, index), log_path, ending_path, pid});
  return absl::OkStatus();
}

absl::Status Generation::Start(const JobConfig& job, uint64_t number,
                               const std::vector<std::string>& coordinator_flags) {
  processes_.clear();
  starter_loss_ = absl::OkStatus();
  std::error_code error;
  if (job.nn_worker().device() == NnWorkerConfig::CUDA &&
      !std::filesystem::exists(absl::StrCat(bin_dir_, "/", ProgramOf(NN_WORKER, job)), error)) {
    return SuggestScoringOnCpu(
        absl::FailedPreconditionError(absl::StrCat(
            "cannot train on a GPU: ", bin_dir_, " has no ", ProgramOf(NN_WORKER, job),
            ", because it was built without CUDA; run ./setup cuda, and build it again")),
        job);
  }
  for (const Role role : kStartOrder) {
    for (int index = 0; index < ReplicasOf(role, job); ++index) {
      RETURN_IF_ERROR(StartOne(job, role, index, number, coordinator_flags));
    }
  }
  return absl::OkStatus();
}

absl::Status Generation::Reap() {
  auto exits = starter_->TakeExits();
  if (absl::IsAborted(exits.status())) {
    starter_loss_ = exits.status();
    RETURN_IF_ERROR(starter_->Replace(kGoneMs));
    exits = starter_->TakeExits();
  }
  RETURN_IF_ERROR(exits.status());
  for (const ProcessStarter::Exit& exit : *exits) {
    for (RoleProcess& process : processes_) {
      if (process.pid != exit.pid || process.ended) continue;
      process.ended = true;
      process.wait_status = exit.wait_status;
      process.ended_ms = MonotonicMs();
    }
  }
  if (MonotonicMs() < next_cut_ms_) return absl::OkStatus();
  next_cut_ms_ = MonotonicMs() + kLogPeriodMs;
  std::vector<std::string> logs;
  for (const RoleProcess& process : processes_) logs.push_back(process.log_path);
  log_cutter_.Cut(logs);
  return absl::OkStatus();
}

absl::Status Generation::WaitForRoles(int64_t timeout_ms) {
  const int64_t deadline_ms = MonotonicMs() + timeout_ms;
  const auto counts = [](const RoleProcess& process) {
    return process.ended || process.role == COORDINATOR;
  };
  while (true) {
    RETURN_IF_ERROR(Reap());
    const int64_t left_ms = deadline_ms - MonotonicMs();
    if (std::all_of(processes_.begin(), processes_.end(), counts) || left_ms <= 0) break;
    pollfd waited = {starter_->fd(), POLLIN, 0};
    poll(&waited, 1, static_cast<int>(left_ms));
  }
  return absl::OkStatus();
}

absl::Status Generation::End(int signal, int64_t timeout_ms) {
  std::vector<pid_t> pids;
  for (const RoleProcess& process : processes_) {
    if (!process.ended) pids.push_back(process.pid);
  }
  const absl::Status sent = starter_->Signal(pids, signal);
  // If the starter is lost, the processes have ended, too.
  if (absl::IsAborted(sent)) return Reap();
  RETURN_IF_ERROR(sent);
  const int64_t deadline_ms = MonotonicMs() + timeout_ms;
  while (true) {
    RETURN_IF_ERROR(Reap());
    const int64_t left_ms = deadline_ms - MonotonicMs();
    if (AllEnded() || left_ms <= 0) return absl::OkStatus();
    pollfd waited = {starter_->fd(), POLLIN, 0};
    poll(&waited, 1, static_cast<int>(left_ms));
  }
}

absl::Status Generation::Signal(Role role, int index, int signal) {
  for (const RoleProcess& process : processes_) {
    if (process.role == role && process.index == index && !process.ended) {
      return starter_->Signal({process.pid}, signal);
    }
  }
  return absl::NotFoundError(absl::StrCat(MemberName(role, index), " does not run"));
}

bool Generation::AnyEnded() const {
  return std::any_of(processes_.begin(), processes_.end(),
                     [](const RoleProcess& process) { return process.ended; });
}

bool Generation::AllEnded() const {
  return std::all_of(processes_.begin(), processes_.end(),
                     [](const RoleProcess& process) { return process.ended; });
}

const RoleProcess* Generation::FirstEnded(
    absl::FunctionRef<bool(const RoleProcess&)> counts) const {
  const RoleProcess* first = nullptr;
  for (const RoleProcess& process : processes_) {
    if (!process.ended || (first != nullptr && first->ended_ms <= process.ended_ms)) continue;
    if (counts(process)) first = &process;
  }
  return first;
}

}  // namespace satrap
