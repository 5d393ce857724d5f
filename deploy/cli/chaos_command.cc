// chaos: trains a job while it kills and stops its processes, and proves that nothing was lost and
// nothing was done twice.

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/file_system.h"
#include "common/checkpoint/run_log.h"
#include "common/role/role_flags.h"
#include "common/thread/clock.h"
#include "deploy/cli/chaos_plan.h"
#include "deploy/cli/commands.h"
#include "deploy/cli/cut_files.h"
#include "deploy/cli/exactly_once.h"
#include "deploy/cli/job_preparation.h"
#include "deploy/cli/run_job.h"
#include "deploy/report/progress_line.h"

namespace satrap {
namespace {

// How long after a long stop the next generation may take to run.
constexpr double kRestartSeconds = 60;

// Carries the events out while the run goes on.
class Chaos {
 public:
  explicit Chaos(std::vector<ChaosEvent> events) : events_(std::move(events)) {}

  // Looks at the run, and does what is due. Always returns true: the run goes on.
  bool Watch(const StatusAnswer& status, Launcher* launcher) {
    if (stopped_) {
      WatchStopped(status, launcher);
    } else if (next_ < events_.size() && IsDue(status)) {
      Begin(status, launcher);
    }
    return true;
  }

  // What did not happen as it must have; empty if all did.
  std::string Problems() const {
    std::string problems = problems_;
    if (next_ < events_.size() || stopped_) {
      absl::StrAppend(&problems,
                      "\n  the run ended before everything was done to it: give it more "
                      "samples");
    }
    return problems;
  }
  int kills() const { return kills_; }
  // How many times the newest cut was verified after a kill.
  int verified_cuts() const { return verified_cuts_; }

 private:
  const ChaosEvent& Current() const { return events_[next_ - 1]; }

  // Each event meets a generation that trains, so that each costs one restart.
  bool IsDue(const StatusAnswer& status) const {
    return status.state() == RUNNING && status.generation() != ended_generation_ &&
           ProgressFraction(status) >= events_[next_].fraction;
  }

  void Begin(const StatusAnswer& status, Launcher* launcher) {
    const ChaosEvent& event = events_[next_];
    const bool is_kill = event.stop_seconds == 0;
    // The process may have ended by itself a moment ago: then it is another one's turn.
    if (!launcher->Signal(event.role, event.index, is_kill ? SIGKILL : SIGSTOP).ok()) return;
    ++next_;
    // On a terminal the progress line is still open.
    fprintf(stderr, "%ssatrap: chaos: at %.0f %%, in generation %llu: %s\n",
            isatty(STDERR_FILENO) == 1 ? "\n" : "", ProgressFraction(status) * 100,
            static_cast<unsigned long long>(status.generation()), ChaosText(event).c_str());
    if (is_kill) {
      ++kills_;
      ended_generation_ = status.generation();
      VerifyNewestCut(launcher->run_dir());
      return;
    }
    stopped_ = true;
    continued_ = false;
    stopped_generation_ = status.generation();
    stopped_s_ = MonotonicSeconds();
  }

  void WatchStopped(const StatusAnswer& status, Launcher* launcher) {
    const ChaosEvent& event = Current();
    const double seconds = MonotonicSeconds() - stopped_s_;
    const bool must_restart = event.stop_seconds == kLongStopSeconds;
    const bool restarted = status.generation() > stopped_generation_;
    if (restarted && !must_restart) {
      Problem(absl::StrCat("the run was restarted because ", MemberName(event.role, event.index),
                           " stood still for ", event.stop_seconds, " s"));
    }
    if (restarted) {
      stopped_ = false;
      return;
    }
    if (!continued_ && seconds >= event.stop_seconds) {
      continued_ = true;
      // A process that was killed meanwhile needs none.
      launcher->Signal(event.role, event.index, SIGCONT).IgnoreError();
    }
    // Two heartbeats later a process that was waited for has been heard again.
    if (!must_restart && seconds >= event.stop_seconds + 2) stopped_ = false;
    if (must_restart && seconds >= event.stop_seconds + kRestartSeconds) {
      Problem(absl::StrCat("the run was not restarted although ",
                           MemberName(event.role, event.index), " stood still for ",
                           event.stop_seconds, " s"));
      stopped_ = false;
    }
  }

  // What the next generation begins from must be whole, at whatever moment the kill came. The newest
  // cut outlives the next commit (checkpoint.keep), so nobody removes it meanwhile.
  void VerifyNewestCut(const std::string& run_dir) {
    const absl::StatusOr<RunLog> log = RunLog::Open(run_dir, DiskFileSystem());
    if (!log.ok()) return Problem(std::string(log.status().message()));
    if (log->next_start().empty()) return;
    const absl::StatusOr<std::string> found =
        VerifyCut(FolderOfCut(run_dir, log->next_start()), DiskFileSystem());
    if (!found.ok()) return Problem(std::string(found.status().message()));
    ++verified_cuts_;
  }

  void Problem(const std::string& problem) { absl::StrAppend(&problems_, "\n  ", problem); }

  const std::vector<ChaosEvent> events_;
  size_t next_ = 0;
  int kills_ = 0;
  int verified_cuts_ = 0;
  uint64_t ended_generation_ = 0;  // the one that the last kill has ended
  bool stopped_ = false;           // the last event is a stop that is not over
  bool continued_ = false;
  uint64_t stopped_generation_ = 0;
  double stopped_s_ = 0;
  std::string problems_;
};

// Prints what a check found. Returns whether it passed; one that does not apply passes.
bool PrintCheck(const absl::StatusOr<std::string>& found) {
  const bool applies = !absl::IsFailedPrecondition(found.status());
  fprintf(stderr, "satrap: chaos: %s%s\n", found.ok() || !applies ? "" : "WRONG: ",
          found.ok() ? found->c_str() : std::string(found.status().message()).c_str());
  return found.ok() || !applies;
}

absl::StatusOr<int> RunChaos(const CommandLine& line) {
  ASSIGN_OR_RETURN(const std::string path, FindJobFile(line.arguments[0], line.install_dir));
  ASSIGN_OR_RETURN(const JobConfig job, PrepareJob(path, line.sets, line.install_dir));
  RETURN_IF_ERROR(CheckOutputs(job, path, {line.report}));
  Chaos chaos(PlanChaos(job, line.kills, line.seed));
  const absl::StatusOr<JobRun> run =
      RunJob(job, line, [&chaos](const StatusAnswer& status, Launcher* launcher) {
        return chaos.Watch(status, launcher);
      });
  const int code = ReportRun(run);
  if (code != 0) return code;
  bool good = PrintCheck(CheckLedger(run->run_dir));
  good = PrintCheck(CheckTally(run->run_dir)) && good;
  const std::string problems = chaos.Problems();
  fprintf(stderr,
          "satrap: chaos: %d kills with seed %llu, %zu restarts; %d times the newest cut was "
          "verified%s\n",
          chaos.kills(), static_cast<unsigned long long>(line.seed), run->report->restarts.size(),
          chaos.verified_cuts(), problems.c_str());
  return good && problems.empty() ? 0 : 1;
}

}  // namespace

int ChaosCommand(const CommandLine& line) {
  const absl::StatusOr<int> code = RunChaos(line);
  return code.ok() ? *code : PrintError(code.status());
}

}  // namespace satrap
