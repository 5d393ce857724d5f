#include "deploy/launcher/process/generation_cause.h"

#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/types/optional.h"
#include "common/role/ending.h"
#include "deploy/launcher/process/child_process.h"

namespace satrap {
namespace {

// The ending that the process has written; nullopt if it runs, ended well or has not written one.
absl::optional<Ending> LeftBy(const RoleProcess& process) {
  if (!process.ended || process.ended_well()) return absl::nullopt;
  return ReadEnding(process.ending_path);
}

// If the role's ending says that the role ended because another process had failed, returns the
// failure of that process; otherwise nullopt.
absl::optional<Ending> HeardBy(const RoleProcess& process) {
  if (process.role == COORDINATOR) return absl::nullopt;
  absl::optional<Ending> left = LeftBy(process);
  if (left.has_value() && IsOf(*left, process.role, process.index)) left.reset();
  return left;
}

// Whether a role has ended because of another process's failure. If the role could not write an
// ending, its exit code says so.
bool IsEcho(const RoleProcess& process) {
  const bool has_left = LeftBy(process).has_value();
  return HeardBy(process).has_value() || (!has_left && (process.exited_with(kExitEchoStartAgain) ||
                                                        process.exited_with(kExitEchoFailed)));
}

bool MissesItsCoordinator(const RoleProcess& process) {
  const absl::optional<Ending> left = LeftBy(process);
  return left.has_value() && left->why() == Ending::COORDINATOR_SILENT;
}

bool IsKill(const RoleProcess& process) {
  return process.was_killed() && WTERMSIG(process.wait_status) == SIGKILL;
}

Cause SilentCoordinator(const RoleProcess& coordinator, const RoleProcess* witness) {
  Cause cause;
  cause.ending = EndingOf(Ending::COORDINATOR_SILENT, COORDINATOR, 0,
                          absl::StrCat(coordinator.name, " (process ", coordinator.pid,
                                       ") is running but does not answer"));
  cause.full = absl::StrCat(cause.ending.text(), "; its log is ", ShownPath(coordinator.log_path));
  if (witness != nullptr) {
    absl::StrAppend(&cause.full, "\n  ", witness->name, " says: ", LastErrorOf(witness->log_path));
  }
  return cause;
}

// The cause, given the `ending` that the coordinator or a role reported. `first`, if not null, is
// the first process that ended by itself. If it ended before the process that `ending` names, it is
// the cause: the other process failed only because `first` was gone.
Cause ToldCause(const Generation& generation, const Ending& ending, int64_t over_ms,
                const RoleProcess* first) {
  const std::vector<RoleProcess>& processes = generation.processes();
  const auto told = std::find_if(
      processes.begin(), processes.end(),
      [&ending](const RoleProcess& process) { return IsOf(ending, process.role, process.index); });
  const bool is_told = told != processes.end();
  if (first != nullptr && first->ended_ms <= over_ms && !(is_told && first == &*told)) {
    const bool before = !is_told || !told->ended || first->ended_ms < told->ended_ms;
    // If a process exits with code 0 before the run is over, no failure of another process has made
    // it exit.
    if (before || first->ended_well()) return CauseOf(*first);
  }
  if (!is_told) {
    const std::filesystem::path log(processes.front().log_path);
    return {ending, absl::StrCat(ending.text(), "\n  logs are in ", ShownPath(log.parent_path()))};
  }
  return {ending, absl::StrCat(ending.text(), "\n  ", told->name, " ",
                               told->ended ? DescribeExit(told->wait_status) : "was ended",
                               "; its log is ", ShownPath(told->log_path))};
}

}  // namespace

Cause CauseOf(const RoleProcess& process) {
  Cause cause;
  cause.ending = LeftBy(process).value_or(
      EndingOf(process.was_killed() ? Ending::MEMBER_LOST : Ending::MEMBER_FAILED, process.role,
               process.index, ""));
  cause.ending.set_text(absl::StrCat(process.name, " ", DescribeExit(process.wait_status),
                                     process.ended_well() ? " before the run was over" : ""));
  cause.full = absl::StrCat(cause.ending.text(), "; its log is ", ShownPath(process.log_path));
  // A process cannot log its own SIGKILL, so its last line is unrelated.
  const std::string last = IsKill(process) ? "" : LastErrorOf(process.log_path);
  if (!last.empty()) absl::StrAppend(&cause.full, "\n  it says: ", last);
  return cause;
}

Cause CauseOf(const absl::Status& not_started) {
  Cause cause;
  cause.ending = FailureOf(COORDINATOR, 0, not_started);
  cause.ending.set_before_ready(true);
  cause.full = cause.ending.text();
  return cause;
}

Cause FindCause(const Generation& generation, const CoordinatorView& view) {
  if (!generation.starter_loss().ok()) {
    const std::string text(generation.starter_loss().message());
    return {EndingOf(Ending::OTHER, text), text};
  }
  const RoleProcess& coordinator = generation.coordinator();
  const RoleProcess* killed =
      generation.FirstEnded([](const RoleProcess& process) { return process.was_killed(); });
  if (killed != nullptr) return CauseOf(*killed);
  // Skip a coordinator that exits in order to be started again: the reason is in another process.
  const RoleProcess* first = generation.FirstEnded([](const RoleProcess& process) {
    const bool is_told = process.role == COORDINATOR && process.exited_with(kExitStartAgain);
    return !is_told && !IsEcho(process);
  });
  const RoleProcess* witness = generation.FirstEnded(MissesItsCoordinator);
  const bool runs_silent = !coordinator.ended && !view.answers;
  if (runs_silent && (view.is_silent || witness != nullptr)) {
    return SilentCoordinator(coordinator, witness);
  }
  if (view.status.state() == FAILED || view.status.state() == RESTARTING) {
    return ToldCause(generation, view.status.ending(), view.over_ms, first);
  }
  if (coordinator.exited_with(kExitFailed)) return CauseOf(coordinator);
  // The coordinator may have exited before it could be asked for its status. Then its written
  // ending has what the status would have said. Roles may have heard of that ending, too.
  if (const absl::optional<Ending> left = LeftBy(coordinator); left.has_value()) {
    return ToldCause(generation, *left, coordinator.ended_ms, first);
  }
  const RoleProcess* echo = generation.FirstEnded(
      [](const RoleProcess& process) { return HeardBy(process).has_value(); });
  if (echo != nullptr) return ToldCause(generation, *HeardBy(*echo), echo->ended_ms, first);
  if (first == nullptr) first = generation.FirstEnded([](const RoleProcess&) { return true; });
  return first == nullptr ? SilentCoordinator(coordinator, nullptr) : CauseOf(*first);
}

Cause CauseOfEndInLog(const Ending& in_log, const Cause& seen) {
  const bool role_is_lost =
      seen.ending.why() == Ending::MEMBER_LOST && !IsOf(seen.ending, COORDINATOR, 0);
  return role_is_lost ? seen : Cause{in_log, in_log.text()};
}

std::string RestartText(const Cause& cause, bool is_scaled, int64_t pause_ms,
                        const RunProgress& progress, const StatusAnswer& status) {
  std::string text = is_scaled ? "the run is scaled" : cause.full;
  absl::StrAppend(&text, "\n  ");
  if (pause_ms >= 1000) absl::StrAppend(&text, "in ", pause_ms / 1000, " s ");
  absl::StrAppend(&text, "generation ", progress.generation + 1, " continues from ",
                  BeginningText(progress), "; ");
  // Before a change of size, the ranks save a cut after their last step.
  if (is_scaled || LosesNoWork(progress, status)) return text + kNoWorkIsLost;
  return absl::StrCat(text, LossText(progress, status), " and trained again");
}

std::string OutlookText(const std::string& run_dir, const RunProgress& before,
                        const StatusAnswer& status, const EndOfGeneration& end) {
  const auto newest = ReadRunProgress(run_dir);
  if (!newest.ok() || newest->generation == 0 || newest->result.has_value()) return "";
  const std::string how = ResumeText(run_dir, *newest, ShownPath(run_dir));
  if (end.saved) return absl::StrCat(kNoWorkIsLost, "; ", how);
  // A generation that did not begin has no work to lose. What the previous generation has lost was
  // reported when the launcher restarted after that generation.
  const bool claimed = newest->generation > before.generation;
  if (!end.has_run && status.train().step() == 0 && (end.has_answered || !claimed)) return how;
  if (LosesNoWork(*newest, status)) return absl::StrCat(kNoWorkIsLost, "; ", how);
  return absl::StrCat(how, "; ", LossText(*newest, status));
}

bool IsSavedAtStop(const RunProgress& newest, uint64_t generation) {
  // If a change of size was under way when the stop was asked for, the cut of that change has saved
  // all work, and nothing was trained after the cut.
  if (newest.began == BEGAN_SCALE_ANNOUNCED) return true;
  // Otherwise the generation may have committed its last cut, and a process may have died before
  // anybody could report the commit.
  return newest.cut.has_value() && newest.cut->generation() == generation &&
         (newest.cut->leave() || newest.cut->last());
}

// Write each flag on one line, because people see flags in lists of processes.
void AddFlagsOf(const Ending& ending, std::vector<std::string>* flags) {
  Ending without_text = ending;
  without_text.clear_text();
  flags->push_back(absl::StrCat("--ended=", without_text.ShortDebugString()));
  flags->push_back(absl::StrCat("--cause=", absl::StrReplaceAll(ending.text(), {{"\n", " "}})));
}

}  // namespace satrap
