#include "deploy/launcher/launcher.h"

#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "common/check.h"
#include "common/config/job_config.h"
#include "common/role/coordinator_client.h"
#include "common/role/role_flags.h"
#include "common/rpc/grpc_channel.h"
#include "common/status_macros.h"
#include "deploy/launcher/child_process.h"

namespace satrap {
namespace {

constexpr Role kStartOrder[] = {COORDINATOR, EMBEDDING_PS, EMBEDDING_WORKER, DATA_LOADER,
                                NN_WORKER};

constexpr int64_t kStatusPeriodMs = 250;
constexpr int64_t kStatusPatienceMs = 1000;
// After a first sign of failure: how long others may take to show the cause.
constexpr int64_t kSettleMs = 700;
// After FINISHED: how long roles may take to end by themselves.
constexpr int64_t kFinishMs = 20000;
// Between SIGTERM and SIGKILL.
constexpr int64_t kTermMs = 2000;

int64_t NowMs() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

struct RoleProcess {
  Role role;
  int index;
  std::string name;  // "nn_worker 1"
  std::string log_path;
  ChildProcess process;
  bool ended = false;
  int64_t ended_ms = 0;

  bool ended_well() const { return ended && process.wait_status() == 0; }
  bool ended_badly() const { return ended && process.wait_status() != 0; }
};

sigset_t LauncherSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGCHLD);
  return signals;
}

// "embedding_ps_0", as in names of logs and sockets.
std::string FileNameOf(Role role, int index) { return absl::StrCat(RoleName(role), "_", index); }

// A path as a user types it: relative if it lies under the current folder.
std::string ShownPath(const std::string& path) {
  std::error_code error;
  const auto relative = std::filesystem::relative(path, error);
  if (error || relative.empty() || absl::StartsWith(relative.string(), "..")) return path;
  return relative.string();
}

}  // namespace

struct Launcher::Rep {
  absl::Status StartAll(const JobConfig& job, const RunFolder& folder, const std::string& bin_dir);
  absl::Status StartOne(const RunFolder& folder, const std::string& bin_dir, Role role, int index);
  int SleepUntilSignal(int64_t ms);
  void Reap();
  void AskStatus();
  bool AllRolesEnded();
  void WaitForRolesToEnd(int64_t patience_ms);
  void EndAll();
  void Settle();
  std::string Cause();
  std::string Blame(const RoleProcess& process);
  RunEnd Finish();

  std::vector<RoleProcess> processes;  // the coordinator first
  std::string coordinator_address;
  std::unique_ptr<rpc::GrpcChannel> channel;
  StatusAnswer status;
  int64_t next_status_ms = 0;
};

absl::Status Launcher::Rep::StartOne(const RunFolder& folder, const std::string& bin_dir, Role role,
                                     int index) {
  const std::string file_name = FileNameOf(role, index);
  const std::string program = absl::StrCat(bin_dir, role == COORDINATOR ? "/deploy/" : "/",
                                           RoleName(role), "/", RoleName(role));
  std::vector<std::string> args = {program, absl::StrCat("--config=", folder.JobPath()),
                                   absl::StrCat("--role_index=", index)};
  if (role != COORDINATOR) args.push_back(absl::StrCat("--coordinator=", coordinator_address));
  if (role == NN_WORKER) {
    args.push_back("--advertise=127.0.0.1");
  } else if (role != DATA_LOADER) {
    args.push_back(absl::StrCat("--listen=", folder.SocketAddress(file_name)));
  }
  const std::string log_path = folder.LogPath(file_name);
  ASSIGN_OR_RETURN(ChildProcess process, ChildProcess::Start(args, log_path));
  processes.push_back({role, index, MemberName(role, index), log_path, std::move(process)});
  return absl::OkStatus();
}

absl::Status Launcher::Rep::StartAll(const JobConfig& job, const RunFolder& folder,
                                     const std::string& bin_dir) {
  RETURN_IF_ERROR(WriteFileAtomically(folder.JobPath(), ResolvedJobText(job)));
  coordinator_address = folder.SocketAddress(FileNameOf(COORDINATOR, 0));
  for (const Role role : kStartOrder) {
    for (int index = 0; index < ReplicasOf(role, job); ++index) {
      RETURN_IF_ERROR(StartOne(folder, bin_dir, role, index));
    }
  }
  ASSIGN_OR_RETURN(channel, rpc::GrpcChannel::Create(coordinator_address, rpc::EndpointOptions()));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Launcher>> Launcher::Start(const JobConfig& job,
                                                          const RunFolder& folder,
                                                          const std::string& bin_dir) {
  const sigset_t signals = LauncherSignals();
  CHECK(sigprocmask(SIG_BLOCK, &signals, nullptr) == 0);
  auto rep = std::make_unique<Rep>();
  const absl::Status status = rep->StartAll(job, folder, bin_dir);
  if (!status.ok()) {
    rep->EndAll();
    return status;
  }
  return std::unique_ptr<Launcher>(new Launcher(std::move(rep)));
}

Launcher::Launcher(std::unique_ptr<Rep> rep) : rep_(std::move(rep)) {}

Launcher::~Launcher() { rep_->EndAll(); }

// Returns the signal that asks the launcher to stop, or 0.
int Launcher::Rep::SleepUntilSignal(int64_t ms) {
  const sigset_t signals = LauncherSignals();
  const timespec timeout = {ms / 1000, (ms % 1000) * 1000000};
  const int signal = sigtimedwait(&signals, nullptr, &timeout);
  return signal == SIGINT || signal == SIGTERM ? signal : 0;
}

void Launcher::Rep::Reap() {
  for (RoleProcess& process : processes) {
    if (process.ended || !process.process.HasEnded()) continue;
    process.ended = true;
    process.ended_ms = NowMs();
  }
}

void Launcher::Rep::AskStatus() {
  CoordinatorClient client(channel.get(), kStatusPatienceMs);
  const absl::StatusOr<StatusAnswer> answer = client.Status();
  if (answer.ok()) status = *answer;
  next_status_ms = NowMs() + kStatusPeriodMs;
}

bool Launcher::Rep::AllRolesEnded() {
  return std::all_of(processes.begin(), processes.end(), [](const RoleProcess& process) {
    return process.ended || process.role == COORDINATOR;
  });
}

void Launcher::Rep::WaitForRolesToEnd(int64_t patience_ms) {
  const int64_t deadline_ms = NowMs() + patience_ms;
  Reap();
  while (!AllRolesEnded() && NowMs() < deadline_ms) {
    SleepUntilSignal(20);
    Reap();
  }
}

void Launcher::Rep::EndAll() {
  for (const auto& [signal, patience_ms] :
       {std::pair<int, int64_t>{SIGTERM, kTermMs}, std::pair<int, int64_t>{SIGKILL, kTermMs}}) {
    Reap();
    for (RoleProcess& process : processes) process.process.Signal(signal);
    const int64_t deadline_ms = NowMs() + patience_ms;
    const auto ended = [](const RoleProcess& process) { return process.ended; };
    while (!std::all_of(processes.begin(), processes.end(), ended) && NowMs() < deadline_ms) {
      SleepUntilSignal(20);
      Reap();
    }
  }
}

// Lets the processes that fell with the first one end, and hears the coordinator, which may know
// the cause. Only what happens before the launcher itself sends signals can be a cause.
void Launcher::Rep::Settle() {
  WaitForRolesToEnd(kSettleMs);
  if (!processes.front().ended) AskStatus();
}

std::string Launcher::Rep::Blame(const RoleProcess& process) {
  std::string message = absl::StrCat(process.name, " ", DescribeExit(process.process.wait_status()),
                                     "; its log is ", ShownPath(process.log_path));
  const std::string last = LastErrorOf(process.log_path);
  if (!last.empty()) absl::StrAppend(&message, "\n  it says: ", last);
  return message;
}

// A process killed by a signal is a cause; else what the coordinator was told first; else the first
// process that ended badly.
std::string Launcher::Rep::Cause() {
  const RoleProcess* killed = nullptr;
  const RoleProcess* first = nullptr;
  for (const RoleProcess& process : processes) {
    if (!process.ended) continue;
    if (WIFSIGNALED(process.process.wait_status()) &&
        (killed == nullptr || process.ended_ms < killed->ended_ms)) {
      killed = &process;
    }
    if (first == nullptr || process.ended_ms < first->ended_ms) first = &process;
  }
  if (killed != nullptr) return Blame(*killed);
  if (status.state() == FAILED) {
    for (const RoleProcess& process : processes) {
      if (!absl::StartsWith(status.stop_reason(), process.name + ":")) continue;
      return absl::StrCat(status.stop_reason(), "\n  ", process.name, " ",
                          process.ended ? DescribeExit(process.process.wait_status()) : "was ended",
                          "; its log is ", ShownPath(process.log_path));
    }
    return absl::StrCat(status.stop_reason(), "\n  logs are in ",
                        ShownPath(std::filesystem::path(processes.front().log_path).parent_path()));
  }
  CHECK(first != nullptr);
  return Blame(*first);
}

RunEnd Launcher::Rep::Finish() {
  RunEnd end;
  end.kind = RunEnd::FINISHED;
  WaitForRolesToEnd(kFinishMs);
  for (const RoleProcess& process : processes) {
    if (process.role == COORDINATOR || process.ended_well()) continue;
    end.warnings.push_back(process.ended
                               ? absl::StrCat("after the run had finished, ", Blame(process))
                               : absl::StrCat(process.name, " did not end by itself; its log is ",
                                              ShownPath(process.log_path)));
  }
  // The loaders' last figures.
  if (!processes.front().ended) AskStatus();
  return end;
}

RunEnd Launcher::Wait(absl::FunctionRef<bool(const StatusAnswer&)> on_status) {
  Rep& rep = *rep_;
  RunEnd end;
  while (true) {
    const int signal = rep.SleepUntilSignal(100);
    if (signal != 0) {
      end.kind = RunEnd::INTERRUPTED;
      end.message = strsignal(signal);
      break;
    }
    rep.Reap();
    if (NowMs() >= rep.next_status_ms && !rep.processes.front().ended) {
      rep.AskStatus();
      if (!on_status(rep.status)) {
        end.kind = RunEnd::STOPPED;
        break;
      }
    }
    if (rep.status.state() == FINISHED) {
      end = rep.Finish();
      break;
    }
    const bool any_ended = std::any_of(rep.processes.begin(), rep.processes.end(),
                                       [](const RoleProcess& process) { return process.ended; });
    if (!any_ended && rep.status.state() != FAILED) continue;
    rep.Settle();
    // A role may hear of the end, and go, before the launcher does.
    if (rep.status.state() == FINISHED) {
      end = rep.Finish();
    } else {
      end.message = rep.Cause();
    }
    break;
  }
  end.last_status = rep.status;
  rep.EndAll();
  return end;
}

}  // namespace satrap
