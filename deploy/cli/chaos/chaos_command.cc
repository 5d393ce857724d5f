// The command `chaos`: trains a job while it kills and stops the job's processes, and then proves
// that nothing was lost or done twice.

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/cut_pin.h"
#include "common/checkpoint/run_log.h"
#include "common/config/job_file.h"
#include "common/file/file_system.h"
#include "common/role/role_flags.h"
#include "common/thread/clock.h"
#include "deploy/cli/chaos/chaos_baseline.h"
#include "deploy/cli/chaos/chaos_killer.h"
#include "deploy/cli/chaos/chaos_plan.h"
#include "deploy/cli/chaos/exactly_once.h"
#include "deploy/cli/command_flags.h"
#include "deploy/cli/commands.h"
#include "deploy/cli/job_preparation.h"
#include "deploy/cli/run_job.h"
#include "deploy/cli/show/cut_files.h"
#include "deploy/launcher/process/run_folder.h"
#include "deploy/report/progress_line.h"

namespace satrap {
namespace {

// After a long stop, the next generation must be running within this time.
constexpr double kRestartSeconds = 60;

// On a terminal the progress line is still open, so end it first.
const char* LineEnd() { return isatty(STDERR_FILENO) == 1 ? "\n" : ""; }

// Carries out the events during the run.
class Chaos {
 public:
  explicit Chaos(std::vector<ChaosEvent> events) : events_(std::move(events)) {}

  // Carries out what is due. Always returns true, so that the run continues.
  bool Watch(const StatusAnswer& status, Launcher* launcher) {
    if (stopped_) {
      WatchStopped(status, launcher);
    } else if (next_ < events_.size() && IsDue(status)) {
      Begin(status, launcher);
    }
    return true;
  }

  // Whether all events have been carried out.
  bool IsDone() const { return next_ == events_.size() && !stopped_; }
  // Descriptions of what went wrong; empty if nothing did.
  const std::string& problems() const { return problems_; }
  int kills() const { return kills_; }
  // How many times the newest cut was verified after a kill.
  int verified_cuts() const { return verified_cuts_; }

 private:
  const ChaosEvent& Current() const { return events_[next_ - 1]; }

  // Events wait for a generation that trains, so each kill and each long stop costs a restart of
  // its own.
  bool IsDue(const StatusAnswer& status) const {
    return status.state() == RUNNING && status.generation() != ended_generation_ &&
           ProgressFraction(status) >= events_[next_].fraction;
  }

  void Begin(const StatusAnswer& status, Launcher* launcher) {
    const ChaosEvent& event = events_[next_];
    const bool is_kill = event.stop_seconds == 0;
    // Signal fails if the process has just ended by itself; the event is then tried again later.
    if (!launcher->Signal(event.role, event.index, is_kill ? SIGKILL : SIGSTOP).ok()) return;
    ++next_;
    fprintf(stderr, "%ssatrap: chaos: at %.0f %%, in generation %llu: %s\n", LineEnd(),
            ProgressFraction(status) * 100, static_cast<unsigned long long>(status.generation()),
            ChaosText(event).c_str());
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
                           " was stopped for ", event.stop_seconds, " s"));
    }
    if (restarted) {
      stopped_ = false;
      return;
    }
    if (!continued_ && seconds >= event.stop_seconds) {
      continued_ = true;
      // If the process was killed meanwhile, the error does not matter.
      launcher->Signal(event.role, event.index, SIGCONT).IgnoreError();
    }
    // After two more heartbeats the coordinator has heard from the process again, unless the run
    // was restarted meanwhile.
    if (!must_restart && seconds >= event.stop_seconds + 2) stopped_ = false;
    if (must_restart && seconds >= event.stop_seconds + kRestartSeconds) {
      Problem(absl::StrCat("the run was not restarted although ",
                           MemberName(event.role, event.index), " was stopped for ",
                           event.stop_seconds, " s"));
      stopped_ = false;
    }
  }

  // The cut that the next generation will begin from must be undamaged at any moment, even right
  // after the kill. A commit may remove this cut (checkpoint.keep) before it is pinned. The next
  // generation then begins from a newer cut, so the log must be read again.
  void VerifyNewestCut(const std::string& run_dir) {
    for (int reads = 1;; ++reads) {
      const absl::StatusOr<RunLog> log = RunLog::Open(run_dir, DiskFileSystem());
      if (!log.ok()) return Problem(std::string(log.status().message()));
      if (log->next_start().empty()) return;
      const absl::Status status =
          VerifyCut(FolderOfCut(run_dir, log->next_start()), DiskFileSystem(), &*log).status();
      if (absl::IsNotFound(status) && reads < kReadsOfVanishingCuts) continue;
      if (!status.ok()) return Problem(std::string(status.message()));
      ++verified_cuts_;
      return;
    }
  }

  void Problem(const std::string& problem) { absl::StrAppend(&problems_, "\n  ", problem); }

  const std::vector<ChaosEvent> events_;
  size_t next_ = 0;
  int kills_ = 0;
  int verified_cuts_ = 0;
  uint64_t ended_generation_ = 0;  // the generation that the last kill has ended
  bool stopped_ = false;           // the last event is a stop that is not over
  bool continued_ = false;
  uint64_t stopped_generation_ = 0;
  double stopped_s_ = 0;
  std::string problems_;
};

// Prints what a check found. Returns whether it passed; a check that does not apply passes.
bool PrintCheck(const absl::StatusOr<std::string>& found) {
  const bool applies = !absl::IsFailedPrecondition(found.status());
  fprintf(stderr, "satrap: chaos: %s%s\n", found.ok() || !applies ? "" : "WRONG: ",
          found.ok() ? found->c_str() : std::string(found.status().message()).c_str());
  return found.ok() || !applies;
}

// What was done to a run, and what was wrong with it.
struct Disturbance {
  int kills = 0;
  int verified_cuts = 0;
  std::string problems;
};

constexpr char kRunWasTooShort[] =
    "\n  the run ended before all of its processes were disturbed as planned: give it more samples";

absl::StatusOr<JobRun> RunWithPlannedEvents(const JobConfig& job, const ChaosFlags& flags,
                                            Disturbance* done) {
  Chaos chaos(PlanChaos(job, flags.kills, flags.seed));
  absl::StatusOr<JobRun> run =
      RunJob(job, flags.run, [&chaos](const StatusAnswer& status, Launcher* launcher) {
        return chaos.Watch(status, launcher);
      });
  *done = {chaos.kills(), chaos.verified_cuts(), chaos.problems()};
  if (!chaos.IsDone()) done->problems += kRunWasTooShort;
  return run;
}

absl::StatusOr<JobRun> RunWithRandomKills(JobConfig job, const ChaosFlags& flags,
                                          Disturbance* done) {
  // Several kills may come before the next cut, and each of them uses a restart.
  job.set_max_restarts(std::max(job.max_restarts(), flags.kills));
  ChaosKiller::Options options;
  options.kills = PlanRandomKills(job, flags.kills, flags.every_seconds, flags.seed);
  options.verify = [](const std::string& cut_folder) {
    return VerifyCut(cut_folder, DiskFileSystem()).status();
  };
  options.tell = [](const std::string& kill) {
    fprintf(stderr, "%ssatrap: chaos: %s\n", LineEnd(), kill.c_str());
  };
  std::unique_ptr<ChaosKiller> killer;
  absl::StatusOr<JobRun> run = RunJob(job, flags.run, [&](const StatusAnswer&, Launcher* launcher) {
    options.run_dir = launcher->run_dir();
    if (killer == nullptr) killer = std::make_unique<ChaosKiller>(options);
    return true;
  });
  if (killer == nullptr) return run;
  killer->Stop();
  *done = {killer->kills(), killer->verified_cuts(), killer->problems()};
  if (done->kills < flags.kills) done->problems += kRunWasTooShort;
  return run;
}

// The folders of the undisturbed runs.
std::vector<std::string> UndisturbedDirs(const JobConfig& job, const ChaosFlags& flags) {
  std::string base = flags.run.run_dir;
  if (base.empty()) {
    const time_t now = time(nullptr);
    tm local;
    localtime_r(&now, &local);
    char text[32];
    strftime(text, sizeof(text), "-%Y%m%d-%H%M%S", &local);
    base = absl::StrCat(kRunsDir, "/", job.name(), text);
  }
  std::vector<std::string> dirs;
  for (int i = 1; i <= flags.undisturbed; ++i) {
    dirs.push_back(absl::StrCat(base, "-undisturbed-", i));
  }
  return dirs;
}

// Checks everything that will be written, before hours of training: that the output files can be
// written, and that the folders of all runs can be made.
absl::Status CheckAllOutputs(const JobConfig& job, const std::string& job_path,
                             const ChaosFlags& flags, std::vector<std::string> run_dirs) {
  RETURN_IF_ERROR(CheckOutputs(job, job_path, {flags.run.report}));
  RETURN_IF_ERROR(CheckOutputsWritable(flags.run));
  if (!flags.run.run_dir.empty()) run_dirs.push_back(flags.run.run_dir);
  for (const std::string& dir : run_dirs) RETURN_IF_ERROR(RunFolder::CheckFree(dir));
  return absl::OkStatus();
}

absl::StatusOr<int> RunChaos(const CommandCall& call) {
  ChaosFlags flags;
  ASSIGN_OR_RETURN(const std::vector<std::string> arguments, ParseArguments(call, flags.Table()));
  ASSIGN_OR_RETURN(const std::string path, FindJobFile(arguments[0], call.install_dir));
  ASSIGN_OR_RETURN(const JobConfig job, PrepareJob(path, flags.run.sets, call.install_dir));
  const std::vector<std::string> undisturbed_dirs = UndisturbedDirs(job, flags);
  RETURN_IF_ERROR(CheckAllOutputs(job, path, flags, undisturbed_dirs));
  std::vector<RunResult> undisturbed;
  for (const std::string& dir : undisturbed_dirs) {
    ASSIGN_OR_RETURN(undisturbed.emplace_back(),
                     TrainUndisturbed(call.install_dir, arguments[0], flags.run.sets, dir));
  }
  Disturbance done;
  const absl::StatusOr<JobRun> run = flags.every_seconds > 0
                                         ? RunWithRandomKills(job, flags, &done)
                                         : RunWithPlannedEvents(job, flags, &done);
  const int code = ReportRun(run, flags.run);
  if (code != 0) return code;
  bool good = PrintCheck(CheckLedger(run->run_dir));
  good = PrintCheck(CheckTally(run->run_dir)) && good;
  if (flags.undisturbed > 0) {
    good = PrintCheck(CompareRuns(job, run->report->result, undisturbed)) && good;
  }
  fprintf(stderr,
          "satrap: chaos: %d kills with seed %llu, %zu restarts; %d times the newest cut was "
          "verified%s\n",
          done.kills, static_cast<unsigned long long>(flags.seed), run->report->restarts.size(),
          done.verified_cuts, done.problems.c_str());
  return good && done.problems.empty() ? 0 : 1;
}

}  // namespace

int ChaosCommand(const CommandCall& call) {
  const absl::StatusOr<int> code = RunChaos(call);
  return code.ok() ? *code : PrintErrorOrStop(code.status());
}

}  // namespace satrap
