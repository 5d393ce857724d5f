#include "deploy/launcher/launcher.h"

#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/config/job_config.h"
#include "common/role/coordinator_client.h"
#include "common/role/role_flags.h"
#include "common/rpc/grpc_channel.h"
#include "common/thread/clock.h"
#include "deploy/launcher/child_process.h"

namespace satrap {
namespace {

constexpr Role kStartOrder[] = {COORDINATOR, EMBEDDING_PS, EMBEDDING_WORKER, DATA_LOADER,
                                NN_WORKER};

constexpr int64_t kStatusPeriodMs = 250;
constexpr int64_t kStatusTimeoutMs = 1000;
// How long the launcher waits after the first sign of a failure for its cause to show.
constexpr int64_t kSettleMs = 700;
// How long roles may take to exit by themselves after FINISHED.
constexpr int64_t kFinishMs = 20000;
// Between SIGTERM and SIGKILL. The processes of a failed run have nothing to save.
constexpr int64_t kTermMs = 2000;
constexpr int64_t kFailedTermMs = 500;

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

// The signals that ask the launcher to stop, without those that its parent has set to be ignored
// (nohup): while a signal is blocked it becomes pending even if it is ignored.
sigset_t StopSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  for (const int signal : {SIGHUP, SIGQUIT}) {
    struct sigaction action;
    CHECK(sigaction(signal, nullptr, &action) == 0);
    if (action.sa_handler != SIG_IGN) sigaddset(&signals, signal);
  }
  return signals;
}

sigset_t LauncherSignals() {
  sigset_t signals = StopSignals();
  sigaddset(&signals, SIGCHLD);
  return signals;
}

// "embedding_ps_0", as in names of logs and sockets.
std::string FileNameOf(Role role, int index) { return absl::StrCat(RoleName(role), "_", index); }

// The path as a user would type it: relative if it is below the current folder.
std::string ShownPath(const std::string& path) {
  std::error_code error;
  const auto relative = std::filesystem::relative(path, error);
  if (error || relative.empty() || absl::StartsWith(relative.string(), "..")) return path;
  return relative.string();
}

// Whether the last error in the process's log contains `words`.
bool Says(const RoleProcess& process, absl::string_view words) {
  return absl::StrContains(LastErrorOf(process.log_path), words);
}

// A process that exited because the run had failed is not the cause.
bool IsEcho(const RoleProcess& process) {
  return process.ended_badly() && Says(process, kRunHasFailed);
}

}  // namespace

struct Launcher::Rep {
  Rep();
  ~Rep();
  absl::Status StartAll(const JobConfig& job, const RunFolder& folder, const std::string& bin_dir);
  absl::Status StartOne(const RunFolder& folder, const std::string& bin_dir, Role role, int index);
  void SleepUntilSignal(int64_t ms);
  void Reap();
  void AskStatus();
  bool AllRolesEnded();
  void WaitForRolesToEnd(int64_t timeout_ms);
  void EndAll(int64_t term_ms);
  void Settle();
  const RoleProcess* FirstEnded(absl::FunctionRef<bool(const RoleProcess&)> counts);
  std::string Cause();
  std::string CauseTold(const RoleProcess* first);
  std::string Blame(const RoleProcess& process);
  RunEnd Finish();

  std::vector<RoleProcess> processes;  // the coordinator first
  std::string coordinator_address;
  std::unique_ptr<rpc::GrpcChannel> channel;
  StatusAnswer status;
  bool coordinator_answers = false;  // it answered the last Status call
  int stop_signal = 0;               // the first that asked the launcher to stop
  int64_t next_status_ms = 0;
  int64_t failed_ms = 0;  // when `status` was FAILED first
  sigset_t signals_before;
};

Launcher::Rep::Rep() {
  const sigset_t signals = LauncherSignals();
  CHECK(sigprocmask(SIG_BLOCK, &signals, &signals_before) == 0);
}

Launcher::Rep::~Rep() {
  // Consume signals that came while the processes were being ended: they asked for no more.
  const sigset_t signals = LauncherSignals();
  const timespec now = {0, 0};
  while (sigtimedwait(&signals, nullptr, &now) > 0) continue;
  CHECK(sigprocmask(SIG_SETMASK, &signals_before, nullptr) == 0);
}

absl::Status Launcher::Rep::StartOne(const RunFolder& folder, const std::string& bin_dir, Role role,
                                     int index) {
  const std::string file_name = FileNameOf(role, index);
  const std::string program = absl::StrCat(bin_dir, role == COORDINATOR ? "/deploy/" : "/",
                                           RoleName(role), "/", RoleName(role));
  std::vector<std::string> args = {program};
  if (role == COORDINATOR) {
    args.push_back(absl::StrCat("--config=", folder.JobPath()));
  } else {
    args.push_back(absl::StrCat("--role_index=", index));
    args.push_back(absl::StrCat("--coordinator=", coordinator_address));
  }
  if (role == NN_WORKER) {
    args.push_back("--advertise=127.0.0.1");
  } else if (role != DATA_LOADER) {
    args.push_back(absl::StrCat("--listen=", folder.SocketAddress(file_name)));
  }
  const std::string log_path = folder.LogPath(file_name);
  ASSIGN_OR_RETURN(ChildProcess process, ChildProcess::Start(args, log_path));
  processes.push_back({role, index, MemberName(role, index), log_path, process});
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
  auto rep = std::make_unique<Rep>();
  const absl::Status status = rep->StartAll(job, folder, bin_dir);
  if (!status.ok()) {
    rep->EndAll(kFailedTermMs);
    return status;
  }
  return std::unique_ptr<Launcher>(new Launcher(std::move(rep)));
}

Launcher::Launcher(std::unique_ptr<Rep> rep) : rep_(std::move(rep)) {}

Launcher::~Launcher() { rep_->EndAll(kTermMs); }

// Keeps the first signal that asks the launcher to stop.
void Launcher::Rep::SleepUntilSignal(int64_t ms) {
  const sigset_t signals = LauncherSignals();
  const timespec timeout = {ms / 1000, (ms % 1000) * 1000000};
  const int signal = sigtimedwait(&signals, nullptr, &timeout);
  if (signal > 0 && signal != SIGCHLD && stop_signal == 0) stop_signal = signal;
}

void Launcher::Rep::Reap() {
  for (RoleProcess& process : processes) {
    if (process.ended || !process.process.HasEnded()) continue;
    process.ended = true;
    process.ended_ms = MonotonicMs();
  }
}

void Launcher::Rep::AskStatus() {
  // The first answer is this run's: the launcher started the only process that can listen in the
  // run's socket folder. Later answers must be of the same run.
  Envelope envelope;
  if (status.has_run_id()) envelope.set_run_id(status.run_id());
  CoordinatorClient client(channel.get(), envelope, kStatusTimeoutMs);
  const absl::StatusOr<StatusAnswer> answer = client.Status();
  coordinator_answers = answer.ok();
  if (answer.ok()) status = *answer;
  if (status.state() == FAILED && failed_ms == 0) failed_ms = MonotonicMs();
  next_status_ms = MonotonicMs() + kStatusPeriodMs;
}

bool Launcher::Rep::AllRolesEnded() {
  return std::all_of(processes.begin(), processes.end(), [](const RoleProcess& process) {
    return process.ended || process.role == COORDINATOR;
  });
}

void Launcher::Rep::WaitForRolesToEnd(int64_t timeout_ms) {
  const int64_t deadline_ms = MonotonicMs() + timeout_ms;
  Reap();
  while (!AllRolesEnded() && MonotonicMs() < deadline_ms) {
    SleepUntilSignal(20);
    Reap();
  }
}

void Launcher::Rep::EndAll(int64_t term_ms) {
  // SIGTERM would ask the run to stop; a coordinator whose run is over exits at once.
  for (const auto& [signal, timeout_ms] :
       {std::pair<int, int64_t>{SIGINT, term_ms}, std::pair<int, int64_t>{SIGKILL, kTermMs}}) {
    Reap();
    for (RoleProcess& process : processes) process.process.Signal(signal);
    const int64_t deadline_ms = MonotonicMs() + timeout_ms;
    const auto ended = [](const RoleProcess& process) { return process.ended; };
    while (!std::all_of(processes.begin(), processes.end(), ended) && MonotonicMs() < deadline_ms) {
      SleepUntilSignal(20);
      Reap();
    }
  }
}

// Waits for processes that exit because of the first one, and asks the coordinator, which may know
// the cause. It must run before the launcher sends signals: exits after those say nothing.
void Launcher::Rep::Settle() {
  WaitForRolesToEnd(kSettleMs);
  if (!processes.front().ended) AskStatus();
}

std::string Launcher::Rep::Blame(const RoleProcess& process) {
  std::string message = absl::StrCat(process.name, " ", DescribeExit(process.process.wait_status()),
                                     process.ended_well() ? " before the run was over" : "",
                                     "; its log is ", ShownPath(process.log_path));
  const std::string last = LastErrorOf(process.log_path);
  if (!last.empty()) absl::StrAppend(&message, "\n  it says: ", last);
  return message;
}

// The first process that ended among those for which `counts` is true. Null if there is none.
const RoleProcess* Launcher::Rep::FirstEnded(absl::FunctionRef<bool(const RoleProcess&)> counts) {
  const RoleProcess* first = nullptr;
  for (const RoleProcess& process : processes) {
    if (!process.ended || (first != nullptr && first->ended_ms <= process.ended_ms)) continue;
    if (counts(process)) first = &process;
  }
  return first;
}

// The cause when the coordinator has one. `first`, if not null, is the first process that ended by
// itself. It is the cause if it ended before the process that the coordinator names, because that
// one failed when it missed `first`.
std::string Launcher::Rep::CauseTold(const RoleProcess* first) {
  const std::string& reason = status.stop_reason();
  const auto told =
      std::find_if(processes.begin(), processes.end(), [&reason](const RoleProcess& process) {
        return absl::StartsWith(reason, absl::StrCat(process.name, ":")) ||
               absl::StartsWith(reason, absl::StrCat(process.name, " (process "));
      });
  const bool is_told = told != processes.end();
  if (first != nullptr && first->ended_ms <= failed_ms && !(is_told && first == &*told)) {
    const bool before = !is_told || !told->ended || first->ended_ms < told->ended_ms;
    // Exit code 0 before the run is over is never a consequence of another failure.
    if (before || first->ended_well()) return Blame(*first);
  }
  if (!is_told) {
    return absl::StrCat(reason, "\n  logs are in ",
                        ShownPath(std::filesystem::path(processes.front().log_path).parent_path()));
  }
  return absl::StrCat(reason, "\n  ", told->name, " ",
                      told->ended ? DescribeExit(told->process.wait_status()) : "was ended",
                      "; its log is ", ShownPath(told->log_path));
}

// Chooses the cause: a process that was killed by a signal; else a coordinator that runs and does
// not answer; else the first failure that the coordinator was told of; else the first process that
// ended.
std::string Launcher::Rep::Cause() {
  const RoleProcess* killed = FirstEnded(
      [](const RoleProcess& process) { return WIFSIGNALED(process.process.wait_status()); });
  if (killed != nullptr) return Blame(*killed);
  const RoleProcess* first =
      FirstEnded([](const RoleProcess& process) { return !IsEcho(process); });
  const RoleProcess& coordinator = processes.front();
  if (first != nullptr && !coordinator.ended && !coordinator_answers &&
      Says(*first, kCoordinatorIsSilent)) {
    return absl::StrCat(coordinator.name, " (process ", coordinator.process.pid(),
                        ") is running but does not answer; its log is ",
                        ShownPath(coordinator.log_path), "\n  ", first->name,
                        " says: ", LastErrorOf(first->log_path));
  }
  if (status.state() == FAILED) return CauseTold(first);
  if (first == nullptr) first = FirstEnded([](const RoleProcess&) { return true; });
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
  // For the loaders' final counts.
  if (!processes.front().ended) AskStatus();
  return end;
}

std::string Launcher::LateSignal() {
  const sigset_t signals = StopSignals();
  const timespec now = {0, 0};
  const int signal = sigtimedwait(&signals, nullptr, &now);
  if (signal > 0 && rep_->stop_signal == 0) rep_->stop_signal = signal;
  return rep_->stop_signal == 0 ? "" : strsignal(rep_->stop_signal);
}

RunEnd Launcher::Wait(absl::FunctionRef<bool(const StatusAnswer&)> on_status) {
  Rep& rep = *rep_;
  RunEnd end;
  while (true) {
    rep.SleepUntilSignal(100);
    if (rep.stop_signal != 0) {
      end.kind = RunEnd::INTERRUPTED;
      end.message = strsignal(rep.stop_signal);
      break;
    }
    rep.Reap();
    if (MonotonicMs() >= rep.next_status_ms && !rep.processes.front().ended) {
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
    // A role may learn that the run has finished, and exit, before the launcher does.
    if (rep.status.state() == FINISHED) {
      end = rep.Finish();
    } else {
      end.message = rep.Cause();
    }
    break;
  }
  end.last_status = rep.status;
  rep.EndAll(end.kind == RunEnd::FAILED ? kFailedTermMs : kTermMs);
  return end;
}

}  // namespace satrap
