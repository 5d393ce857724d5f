#include "deploy/cli/run_job.h"

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checked_text.h"
#include "common/checkpoint/cut_pin.h"
#include "common/checkpoint/ledger/ledger.h"
#include "common/checkpoint/manifest.h"
#include "common/checkpoint/run_log.h"
#include "common/learning_rate/batch_scaling.h"
#include "common/role/ending.h"
#include "common/thread/clock.h"
#include "data_loader/batch/quarantine_files.h"
#include "data_loader/synthetic/bayes_auc.h"
#include "deploy/cli/programs_dir.h"
#include "deploy/cli/run_console.h"
#include "deploy/launcher/kept_data_warnings.h"
#include "deploy/launcher/process/run_folder.h"
#include "deploy/launcher/process/run_progress.h"
#include "deploy/report/run_warnings.h"
#include "nn_worker/report/warm_start_report.h"

namespace satrap {
namespace {

constexpr int kInterrupted = 130;
// After a run's end, how long to wait until its messages are on the terminal and its findings about
// the data are on the disk.
constexpr int64_t kWriteMs = 2000;

absl::StatusOr<std::unique_ptr<RunFolder>> MakeRunFolder(const JobConfig& job,
                                                         const RunFlags& flags) {
  if (!flags.run_dir.empty()) return RunFolder::CreateAt(flags.run_dir);
  // Later commands use the run that the link `latest` names, so the link must name a run with a
  // model.
  return RunFolder::CreateUnder(kRunsDir, job.name().empty() ? "job" : job.name(),
                                job.action() == JobConfig::TRAIN);
}

RunReport MakeReport(const JobConfig& job, const StatusAnswer& status, double wall_seconds) {
  RunReport report = MakeRunReport(job, status, wall_seconds);
  if (job.data().has_synthetic() && report.result.has_test()) {
    report.bayes_auc = ComputeBayesAuc(job.data().synthetic()).of_test_labels;
  }
  return report;
}

// The manifest of a run's newest cut; after training, that is the cut at its end. Absent if there
// is no cut.
absl::StatusOr<absl::optional<CheckpointManifest>> NewestCut(const std::string& run_dir) {
  ASSIGN_OR_RETURN(const RunProgress progress, ReadRunProgress(run_dir));
  if (!progress.cut.has_value()) return absl::nullopt;
  ASSIGN_OR_RETURN(CheckpointManifest manifest,
                   ReadManifest(FolderOfCut(run_dir, progress.cut->cut())));
  return manifest;
}

absl::Status AddReductions(const JobConfig& job, const std::string& run_dir, RunReport* report) {
  if (job.action() != JobConfig::TRAIN || !job.evaluation().has_reduce_on_plateau()) {
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const absl::optional<CheckpointManifest> cut, NewestCut(run_dir));
  if (!cut.has_value()) return absl::OkStatus();
  report->learning_rate_factor = cut->position().plateau().factor();
  report->reductions = cut->position().plateau().reductions();
  return absl::OkStatus();
}

// Adds to the report what the run has taken from its initial model (init_from), as rank 0 wrote it.
absl::Status AddWarmStart(const JobConfig& job, const std::string& run_dir, RunReport* report) {
  if (job.action() != JobConfig::TRAIN || job.init_from().empty()) return absl::OkStatus();
  WarmStartResult result;
  const absl::Status read = ReadCheckedText(run_dir + kWarmStartFile, DiskFileSystem(), &result);
  if (absl::IsNotFound(read)) return absl::OkStatus();  // it was begun by an older build
  if (read.ok()) report->warm_start = std::move(result);
  return read;
}

// Whether an earlier command has begun this run.
bool HasBegun(const std::string& run_dir) {
  const auto progress = ReadRunProgress(run_dir);
  return !progress.ok() || progress->generation > 0;
}

// Merges the bad records that all generations and loaders reported into one list. If a generation
// was cut short, leaves out the lines that no cut shows as consumed.
absl::Status MergeBadRecords(const JobConfig& job, const std::string& run_dir) {
  if (job.action() != JobConfig::TRAIN) {
    return MergeQuarantine(run_dir, /*ledger=*/nullptr).status();
  }
  ASSIGN_OR_RETURN(const absl::optional<CheckpointManifest> cut, NewestCut(run_dir));
  if (!cut.has_value()) return MergeQuarantine(run_dir, /*ledger=*/nullptr).status();
  ASSIGN_OR_RETURN(const Ledger ledger, Ledger::FromState(cut->ledger()));
  return MergeQuarantine(run_dir, &ledger).status();
}

// If the job's init_from names a cut itself, returns a lock that keeps this cut on the disk. Rank 0
// pins the cut later, but a generation may need it again as long as the run has no cut of its own.
// Returns null in two cases. If init_from names a run or a link, each generation takes the cut to
// which this refers at that time. If the run already has a cut, it no longer needs the model.
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

// Detects when a generation has abandoned one more cut.
class AbandonedCuts {
 public:
  bool IsNew(const StatusAnswer& status) {
    if (status.generation() != generation_) known_ = 0;
    generation_ = status.generation();
    const bool is_new = status.cuts().abandoned() > known_;
    known_ = status.cuts().abandoned();
    return is_new;
  }

 private:
  uint64_t generation_ = 0;
  uint64_t known_ = 0;
};

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

absl::Status WriteReport(const RunReport& report, const std::string& copy) {
  const std::string json = ReportJson(report) + "\n";
  RETURN_IF_ERROR(WriteFileAtomically(report.run_dir + "/report.json", json));
  RETURN_IF_ERROR(WriteFileAtomically(report.run_dir + "/report.txt", ReportText(report)));
  // Write the user's own file last: if that fails, the run folder already has the report.
  return copy.empty() ? absl::OkStatus() : WriteFileAtomically(copy, json);
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
    PrintWarnings({absl::StrCat("what earlier commands have found in the data is not known: ",
                                of_data.problem().message())});
  }
  auto started = Launcher::Start(job, folder, programs_dir, options);
  if (!started.ok()) {
    // Close with `at_end`, because no loader has read anything.
    of_data.Close(/*at_end=*/true, kWriteMs).IgnoreError();
    return started.status();
  }
  const std::unique_ptr<Launcher> launcher = *std::move(started);
  // Remove what an earlier failure left behind, now, so that it is gone even if this process is
  // killed.
  const std::string failure = job.run_dir() + "/failure.txt";
  const std::string ending = job.run_dir() + kEndingOfRun;
  for (const std::string& file : {failure, ending}) unlink(file.c_str());
  RunConsole console;
  AbandonedCuts abandoned;
  ProgressWarnings warnings(job);
  JobRun run;
  run.run_dir = folder.path();
  run.end = launcher->Wait(
      [&](const StatusAnswer& status) {
        console.ShowProgress(status, MonotonicMs());
        if (status.has_last_cut()) pin.reset();
        std::vector<std::string> fresh;
        if (abandoned.IsNew(status)) {
          fresh.push_back(absl::StrCat("a cut was abandoned, and training goes on: ",
                                       status.cuts().last_abandoned_cause()));
        }
        for (std::string& warning : of_data.TakeNew(status)) fresh.push_back(std::move(warning));
        for (std::string& warning : warnings.New(status.train())) {
          fresh.push_back(std::move(warning));
        }
        for (const std::string& warning : fresh) console.Say("warning: " + warning);
        return watch == nullptr || watch(status, launcher.get());
      },
      [&](const std::string& message) { console.Say(message); });
  const double wall_seconds = static_cast<double>(MonotonicMs() - start_ms) * 1e-3;
  // The last status may have more warnings. Show them now, because a run may end without a report.
  for (const std::string& warning : of_data.TakeNew(run.end.last_status)) {
    console.Say("warning: " + warning);
  }
  // The callers print to the same terminal next. If it is paused, their writes block.
  console.Drain(kWriteMs);
  const RunState state = run.end.last_status.state();
  const absl::Status kept = of_data.Close(state == FINISHED || state == STOPPED, kWriteMs);
  if (!kept.ok()) {
    run.end.warnings.push_back(absl::StrCat(
        "what was found in the data is not kept for a later resume: ", kept.message()));
  }
  if (run.end.kind == RunEnd::FAILED) {
    // If the disk is full, which may be why the run failed, at least print the message.
    const absl::Status written = WriteFileAtomically(failure, run.end.message + "\n");
    if (!written.ok()) run.end.warnings.emplace_back(written.message());
    LeaveEnding(ending, run.end.ending);
  }
  if (run.end.kind == RunEnd::FINISHED || run.end.kind == RunEnd::STOPPED) {
    const absl::Status merged = MergeBadRecords(job, run.run_dir);
    if (!merged.ok()) {
      run.end.warnings.push_back(absl::StrCat(
          "the bad records of all loaders could not be merged into one file: ", merged.message()));
    }
  }
  if (run.end.kind != RunEnd::FINISHED) return run;
  run.report = MakeReport(job, run.end.last_status, wall_seconds);
  for (std::string& warning : of_data.All(job)) {
    run.report->warnings.push_back(std::move(warning));
  }
  const absl::Status reductions = AddReductions(job, run.run_dir, &*run.report);
  if (!reductions.ok()) {
    run.end.warnings.push_back(
        absl::StrCat("the report does not say how far the rates fell: ", reductions.message()));
  }
  const absl::Status warm_start = AddWarmStart(job, run.run_dir, &*run.report);
  if (!warm_start.ok()) {
    run.end.warnings.push_back(absl::StrCat("the report does not say what was taken of the model: ",
                                            warm_start.message()));
  }
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

int PrintError(const absl::Status& status) {
  fprintf(stderr, "satrap: %s\n", std::string(status.message()).c_str());
  return 1;
}

int PrintErrorOrStop(const absl::Status& status) {
  PrintError(status);
  return absl::IsCancelled(status) ? kInterrupted : 1;
}

}  // namespace satrap
