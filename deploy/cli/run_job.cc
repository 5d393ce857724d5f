#include "deploy/cli/run_job.h"

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/cut_pin.h"
#include "common/checkpoint/run_log.h"
#include "common/learning_rate/batch_scaling.h"
#include "common/role/ending.h"
#include "common/thread/clock.h"
#include "deploy/cli/programs_dir.h"
#include "deploy/cli/run_console.h"
#include "deploy/launcher/kept_data_warnings.h"
#include "deploy/launcher/process/run_folder.h"
#include "deploy/launcher/process/run_progress.h"
#include "deploy/report/run_warnings.h"
#include "deploy/story/run_result.h"

namespace satrap {
namespace {

constexpr int kInterrupted = 130;
// How long to wait after a run's end for its messages to reach the terminal and for its findings
// about the data to reach the disk.
constexpr int64_t kWriteMs = 2000;

absl::StatusOr<std::unique_ptr<RunFolder>> MakeRunFolder(const JobConfig& job,
                                                         const RunFlags& flags) {
  if (!flags.run_dir.empty()) return RunFolder::CreateAt(flags.run_dir);
  // Later commands use the run that the link `latest` names, so only a run that trains a model gets
  // this link.
  return RunFolder::CreateUnder(kRunsDir, job.name().empty() ? "job" : job.name(),
                                job.action() == JobConfig::TRAIN);
}

// Whether an earlier command has begun this run.
bool HasBegun(const std::string& run_dir) {
  const auto progress = ReadRunProgress(run_dir);
  return !progress.ok() || progress->generation > 0;
}

// If the job's init_from names a cut itself, returns a lock that keeps this cut on the disk. Rank 0
// pins the cut later, but a generation may need it again as long as the run has no cut of its own.
//
// Otherwise returns null. If init_from names a run or a link, each generation takes the cut to
// which that name refers at the time. If the run already has a cut, it no longer needs the model,
// even if the model is gone. Also returns null if the job has no init_from, or if the cut has been
// removed.
absl::StatusOr<std::unique_ptr<FileLock>> PinNamedCut(const JobConfig& job) {
  ASSIGN_OR_RETURN(const RunProgress progress, ReadRunProgress(job.run_dir()));
  if (progress.cut.has_value()) return nullptr;
  std::error_code error;
  const std::filesystem::path named = job.init_from();
  if (named.empty() || std::filesystem::canonical(named, error) != named ||
      HasVanished(job.init_from())) {
    return nullptr;
  }
  return PinCut(job.init_from());
}

// Shows on the console what is new in each status of the run.
class NewsOfRun {
 public:
  // The pointers must outlive this.
  NewsOfRun(const JobConfig& job, KeptDataWarnings* of_data, RunConsole* console)
      : of_data_(of_data), console_(console), warnings_(job) {}

  void Show(const StatusAnswer& status) {
    console_->ShowProgress(status, MonotonicMs());
    const std::string of_cut = abandoned_.New(status);
    if (!of_cut.empty()) Warn(of_cut);
    ShowDataWarnings(status);
    for (const std::string& warning : warnings_.New(status.train())) Warn(warning);
  }
  void ShowDataWarnings(const StatusAnswer& status) {
    for (const std::string& warning : of_data_->TakeNew(status)) Warn(warning);
  }

 private:
  void Warn(const std::string& warning) { console_->Say("warning: " + warning); }

  KeptDataWarnings* const of_data_;
  RunConsole* const console_;
  AbandonedCuts abandoned_;
  ProgressWarnings warnings_;
};

// Writes to the run folder why the run failed, for later commands. If that fails, for example
// because the disk is full, the message is at least printed.
void LeaveFailure(const std::string& failure, const std::string& ending, RunEnd* end) {
  const absl::Status written = WriteFileAtomically(failure, end->message + "\n");
  if (!written.ok()) end->warnings.emplace_back(written.message());
  LeaveEnding(ending, end->ending);
}

void KeepBadRecords(const JobConfig& job, const std::string& run_dir, RunEnd* end) {
  const absl::Status merged = MergeBadRecords(job, run_dir);
  if (merged.ok()) return;
  end->warnings.push_back(absl::StrCat(
      "the bad records of all loaders could not be merged into one file: ", merged.message()));
}

}  // namespace

int ExitCodeOf(RunEnd::Kind kind) {
  switch (kind) {
    case RunEnd::FINISHED:
    case RunEnd::STOPPED:
    case RunEnd::DISMISSED:
      return 0;
    case RunEnd::FAILED:
      return 1;
    case RunEnd::INTERRUPTED:
      return kInterrupted;
  }
  return 1;
}

absl::Status CheckOutputsWritable(const RunFlags& flags) {
  for (const std::string& file : {flags.report, flags.output_file}) {
    if (!file.empty()) RETURN_IF_ERROR(CheckWritable(file));
  }
  return absl::OkStatus();
}

absl::StatusOr<JobRun> RunJob(JobConfig job, const RunFlags& flags, RunWatch watch) {
  RETURN_IF_ERROR(CheckOutputsWritable(flags));
  ASSIGN_OR_RETURN(const std::unique_ptr<RunFolder> folder, MakeRunFolder(job, flags));
  job.set_run_dir(folder->path());
  return RunJobIn(*folder, job, LaunchOptions(), flags, std::move(watch));
}

absl::StatusOr<JobRun> RunJobIn(const RunFolder& folder, const JobConfig& job,
                                const LaunchOptions& options, const RunFlags& flags,
                                RunWatch watch) {
  const int64_t start_ms = MonotonicMs();
  // Check now, not after hours of training.
  RETURN_IF_ERROR(CheckOutputsWritable(flags));
  ASSIGN_OR_RETURN(const std::string programs_dir, ProgramsDir());
  ASSIGN_OR_RETURN(std::unique_ptr<FileLock> pin, PinNamedCut(job));
  fprintf(stderr, "satrap: job '%s' runs in %s\n", job.name().c_str(), folder.path().c_str());
  const std::string scaling = BatchScalingText(job);
  if (!scaling.empty()) fprintf(stderr, "satrap: %s\n", scaling.c_str());
  KeptDataWarnings of_data(job.run_dir(), HasBegun(job.run_dir()), DiskFileSystem());
  if (!of_data.problem().ok()) {
    PrintWarnings({absl::StrCat("the earlier warnings about the data could not be read: ",
                                of_data.problem().message())});
  }
  auto started = Launcher::Start(job, folder, programs_dir, options);
  if (!started.ok()) {
    // `at_end`, because nothing is left to be saved: no loader has read anything.
    of_data.Close(/*at_end=*/true, kWriteMs).IgnoreError();
    return started.status();
  }
  const std::unique_ptr<Launcher> launcher = *std::move(started);
  // Remove the files of an earlier failure now, so that they are gone even if this process is
  // killed.
  const std::string failure = job.run_dir() + "/failure.txt";
  const std::string ending = job.run_dir() + kEndingOfRun;
  for (const std::string& file : {failure, ending}) unlink(file.c_str());
  RunConsole console;
  NewsOfRun news(job, &of_data, &console);
  JobRun run;
  run.run_dir = folder.path();
  run.end = launcher->Wait(
      [&](const StatusAnswer& status) {
        if (status.has_last_cut()) pin.reset();
        news.Show(status);
        return watch == nullptr || watch(status, launcher.get());
      },
      [&](const std::string& message) { console.Say(message); });
  const double wall_seconds = static_cast<double>(MonotonicMs() - start_ms) * 1e-3;
  // The last status may have more warnings. Show them now, because a run may end without a report.
  news.ShowDataWarnings(run.end.last_status);
  // The callers print to the same terminal next. If it is paused, their writes block.
  console.Drain(kWriteMs);
  const RunState state = run.end.last_status.state();
  const absl::Status kept = of_data.Close(state == FINISHED || state == STOPPED, kWriteMs);
  if (!kept.ok()) {
    run.end.warnings.push_back(absl::StrCat(
        "the warnings about the data could not be saved for a later resume: ", kept.message()));
  }
  if (run.end.kind == RunEnd::FAILED) LeaveFailure(failure, ending, &run.end);
  if (run.end.kind == RunEnd::FINISHED || run.end.kind == RunEnd::STOPPED) {
    KeepBadRecords(job, run.run_dir, &run.end);
  }
  if (run.end.kind != RunEnd::FINISHED) return run;
  run.report =
      ReportOf(job, run.end.last_status, wall_seconds, of_data.All(job), &run.end.warnings);
  run.report_written = WriteReport(*run.report, flags.report);
  // Computing the Bayes AUC takes seconds. If the user pressed Ctrl-C meanwhile, say that nothing
  // is lost.
  std::string late = launcher->LateSignalText();
  if (!late.empty()) run.end.warnings.push_back(std::move(late));
  return run;
}

void PrintWarnings(const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) {
    fprintf(stderr, "satrap: warning: %s\n", warning.c_str());
  }
}

int PrintEnd(const RunEnd& end) {
  PrintWarnings(end.warnings);
  if (end.kind == RunEnd::FAILED) {
    fprintf(stderr, "satrap: the job failed: %s\n", end.message.c_str());
  }
  if (end.kind == RunEnd::INTERRUPTED) {
    fprintf(stderr, "satrap: stopped by %s; no process is left\n", end.message.c_str());
  }
  if (end.kind == RunEnd::STOPPED) fprintf(stderr, "satrap: stopped on request\n");
  if (!end.outlook.empty()) fprintf(stderr, "satrap: %s\n", end.outlook.c_str());
  return ExitCodeOf(end.kind);
}

int ReportRun(const absl::StatusOr<JobRun>& run, const RunFlags& flags) {
  if (!run.ok()) return PrintError(run.status());
  const int code = PrintEnd(run->end);
  if (run->report.has_value()) {
    FILE* const to = flags.report == "/dev/stdout" ? stderr : stdout;
    fputs(ReportText(*run->report).c_str(), to);
    // Flush before anything is printed to stderr, because both may be one terminal.
    fflush(to);
  }
  return run->report_written.ok() ? code : PrintError(run->report_written);
}

int RunJobAndReport(const JobConfig& job, const RunFlags& flags) {
  return ReportRun(RunJob(job, flags), flags);
}

void SayLine(const std::string& line) { fprintf(stderr, "satrap: %s\n", line.c_str()); }

void ShowText(absl::string_view text) {
  fwrite(text.data(), 1, text.size(), stdout);
  fflush(stdout);
}

int PrintError(const absl::Status& status) {
  fprintf(stderr, "satrap: %s\n", std::string(status.message()).c_str());
  return 1;
}

int PrintText(const absl::StatusOr<std::string>& text) {
  if (!text.ok()) return PrintError(text.status());
  printf("%s", text->c_str());
  return 0;
}

int PrintErrorOrStop(const absl::Status& status) {
  PrintError(status);
  return absl::IsCancelled(status) ? kInterrupted : 1;
}

}  // namespace satrap
