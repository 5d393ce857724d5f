#include "deploy/launcher/generation_cause.h"

#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/role/role_flags.h"
#include "deploy/launcher/child_process.h"

namespace satrap {
namespace {

// Phrases in the last error of a process that ended because of a failure elsewhere. The cause
// follows. No string_views: with -fsanitize=undefined g++ finds no constant in their addresses.
constexpr const char* kEchoes[] = {kRunHasFailed, kGenerationIsOver};

// Whether the last error in the process's log contains `words`.
bool Says(const RoleProcess& process, absl::string_view words) {
  return absl::StrContains(LastErrorOf(process.log_path), words);
}

// What the process says of a failure elsewhere; empty if it ended for a reason of its own.
std::string EchoOf(const RoleProcess& process) {
  if (!process.ended || process.ended_well()) return "";
  const std::string last = LastErrorOf(process.log_path);
  for (const char* phrase : kEchoes) {
    const size_t at = last.find(phrase);
    if (at != std::string::npos) return last.substr(at + std::strlen(phrase));
  }
  return "";
}

bool IsKill(const RoleProcess& process) {
  return process.was_killed() && WTERMSIG(process.wait_status) == SIGKILL;
}

Cause SilentCoordinator(const RoleProcess& coordinator, const RoleProcess* witness) {
  Cause cause;
  cause.brief = absl::StrCat(coordinator.name, " (process ", coordinator.pid,
                             ") is running but does not answer");
  cause.full = absl::StrCat(cause.brief, "; its log is ", ShownPath(coordinator.log_path));
  if (witness != nullptr) {
    absl::StrAppend(&cause.full, "\n  ", witness->name, " says: ", LastErrorOf(witness->log_path));
  }
  return cause;
}

// The cause when the coordinator, or an echo of it, has one. `first`, if not null, is the first
// process that ended by itself. It is the cause if it ended before the process that the coordinator
// names, because that one failed when it missed `first`.
Cause ToldCause(const Generation& generation, const std::string& reason, int64_t over_ms,
                const RoleProcess* first) {
  const std::vector<RoleProcess>& processes = generation.processes();
  const auto told =
      std::find_if(processes.begin(), processes.end(), [&reason](const RoleProcess& process) {
        return absl::StartsWith(reason, absl::StrCat(process.name, ":")) ||
               absl::StartsWith(reason, absl::StrCat(process.name, " (process "));
      });
  const bool is_told = told != processes.end();
  if (first != nullptr && first->ended_ms <= over_ms && !(is_told && first == &*told)) {
    const bool before = !is_told || !told->ended || first->ended_ms < told->ended_ms;
    // Exit code 0 before the run is over is never a consequence of another failure.
    if (before || first->ended_well()) return CauseOf(*first);
  }
  if (!is_told) {
    const std::filesystem::path log(processes.front().log_path);
    return {reason, absl::StrCat(reason, "\n  logs are in ", ShownPath(log.parent_path()))};
  }
  return {reason, absl::StrCat(reason, "\n  ", told->name, " ",
                               told->ended ? DescribeExit(told->wait_status) : "was ended",
                               "; its log is ", ShownPath(told->log_path))};
}

}  // namespace

Cause CauseOf(const RoleProcess& process) {
  Cause cause;
  cause.brief = absl::StrCat(process.name, " ", DescribeExit(process.wait_status),
                             process.ended_well() ? " before the run was over" : "");
  cause.full = absl::StrCat(cause.brief, "; its log is ", ShownPath(process.log_path));
  // Nobody can log that it gets SIGKILL: the last line is about something else.
  const std::string last = IsKill(process) ? "" : LastErrorOf(process.log_path);
  if (!last.empty()) absl::StrAppend(&cause.full, "\n  it says: ", last);
  return cause;
}

Cause FindCause(const Generation& generation, const CoordinatorView& view) {
  const RoleProcess& coordinator = generation.coordinator();
  const RoleProcess* killed =
      generation.FirstEnded([](const RoleProcess& process) { return process.was_killed(); });
  if (killed != nullptr) return CauseOf(*killed);
  // A coordinator that asks to be started again ends its generation for a reason that others know.
  const RoleProcess* first = generation.FirstEnded([](const RoleProcess& process) {
    const bool is_told = process.role == COORDINATOR && process.exited_with(kExitStartAgain);
    return !is_told && EchoOf(process).empty();
  });
  const RoleProcess* witness = generation.FirstEnded(
      [](const RoleProcess& process) { return Says(process, kCoordinatorIsSilent); });
  const bool runs_silent = !coordinator.ended && !view.answers;
  if (runs_silent && (view.is_silent || witness != nullptr)) {
    return SilentCoordinator(coordinator, witness);
  }
  if (view.status.state() == FAILED || view.status.state() == RESTARTING) {
    return ToldCause(generation, view.status.stop_reason(), view.over_ms, first);
  }
  if (coordinator.exited_with(1)) return CauseOf(coordinator);
  // The coordinator may be gone before it was asked: others have heard what it said.
  const RoleProcess* echo =
      generation.FirstEnded([](const RoleProcess& process) { return !EchoOf(process).empty(); });
  if (echo != nullptr) return ToldCause(generation, EchoOf(*echo), echo->ended_ms, first);
  if (first == nullptr) first = generation.FirstEnded([](const RoleProcess&) { return true; });
  return first == nullptr ? SilentCoordinator(coordinator, nullptr) : CauseOf(*first);
}

}  // namespace satrap
