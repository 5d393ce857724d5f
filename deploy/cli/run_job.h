// Runs a prepared job on this machine, from creating its run folder to writing its report.
//
// REQUIRES: the main thread; no gRPC has been used in this process yet

#ifndef SATRAP_DEPLOY_CLI_RUN_JOB_H_
#define SATRAP_DEPLOY_CLI_RUN_JOB_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "deploy/cli/command_flags.h"
#include "deploy/launcher/launcher.h"
#include "deploy/launcher/process/run_folder.h"
#include "deploy/report/run_report.h"
#include "proto/job.pb.h"

namespace satrap {

// The exit code for a run's end: 0, 1, or 130 for a run that was interrupted.
int ExitCodeOf(RunEnd::Kind kind);

// Receives each status of a run, and may send signals to the run's processes. If it returns false,
// the run ends as DISMISSED.
using RunWatch = std::function<bool(const StatusAnswer& status, Launcher* launcher)>;

struct JobRun {
  std::string run_dir;
  RunEnd end;
  absl::optional<RunReport> report;  // set if and only if end.kind is FINISHED
  absl::Status report_written;       // not OK: why one of the files of WriteReport was not written
};

// Checks that the files of --report and --output_file, if given, can be written. Errors as
// CheckWritable.
absl::Status CheckOutputsWritable(const RunFlags& flags);

// Makes the run folder (flags.run_dir, or a new one under ./runs), runs the job, and shows its
// progress and a message for each restart on stderr. Writes the report (WriteReport, with
// flags.report). If the run fails, writes its cause to failure.txt and ending.textproto in the run
// folder. `watch`, if given, receives each status; if it returns false, the run ends as DISMISSED,
// without a report. Checks flags.report and flags.output_file first. An error says why the run
// could not begin.
absl::StatusOr<JobRun> RunJob(JobConfig job, const RunFlags& flags, RunWatch watch = nullptr);

// Like RunJob, but in a folder that already exists or has been reopened; `job.run_dir` is its path.
absl::StatusOr<JobRun> RunJobIn(const RunFolder& folder, const JobConfig& job,
                                const LaunchOptions& options, const RunFlags& flags,
                                RunWatch watch = nullptr);

// Prints to stderr the warnings of a run's end, why it failed or what stopped it, and how to
// continue. Returns the exit code.
int PrintEnd(const RunEnd& end);

// If the run has begun, prints its end (PrintEnd) to stderr and its report to stdout; otherwise
// prints to stderr why it could not begin. If flags.report is stdout, a program reads stdout, so
// the text of the report goes to stderr. Returns the exit code.
int ReportRun(const absl::StatusOr<JobRun>& run, const RunFlags& flags);

// Calls RunJob and ReportRun. Returns the exit code.
int RunJobAndReport(const JobConfig& job, const RunFlags& flags);

// Prints a line "satrap: warning: ..." for each warning to stderr.
void PrintWarnings(const std::vector<std::string>& warnings);

// Prints the line "satrap: LINE" to stderr.
void SayLine(const std::string& line);
// Prints a text that has its line ends to stdout, and flushes it.
void ShowText(absl::string_view text);

// Prints one message, "satrap: ...", to stderr. Returns 1.
int PrintError(const absl::Status& status);
// Prints the text to stdout, or the error to stderr. Returns the exit code.
int PrintText(const absl::StatusOr<std::string>& text);

// Like PrintError, for a command that runs parts of itself in child processes (child_run.h):
// returns 130 if the error says that a signal stopped one of them.
int PrintErrorOrStop(const absl::Status& status);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_CLI_RUN_JOB_H_
