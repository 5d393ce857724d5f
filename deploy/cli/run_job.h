// Runs a prepared job on this machine from its run folder to its report.
//
// REQUIRES: the main thread; no gRPC has been used in this process yet

#ifndef SATRAP_DEPLOY_CLI_RUN_JOB_H_
#define SATRAP_DEPLOY_CLI_RUN_JOB_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "deploy/cli/command_line.h"
#include "deploy/launcher/launcher.h"
#include "deploy/report/run_report.h"
#include "proto/job.pb.h"

namespace satrap {

// What exit code a run's end has: 0, 1, or 130 for a run that was interrupted.
int ExitCodeOf(RunEnd::Kind kind);

struct JobRun {
  std::string run_dir;
  RunEnd end;
  absl::optional<RunReport> report;  // there is one if end.kind is FINISHED, and only then
  absl::Status report_written;       // why report.json or line.report is missing or old
};

// Where the program itself lies: the folder that holds the roles' programs.
absl::StatusOr<std::string> ProgramsDir();

// Makes the run folder (line.run_dir, or under ./runs), runs the job, shows its progress on stderr,
// and writes report.json into the run folder and to line.report, or, if the run fails, its cause
// into failure.txt in the run folder. `watch`, if given, sees each
// status; the run is STOPPED, without a report, when it returns false.
// An error says why the run could not begin: line.report and line.output are looked at first.
absl::StatusOr<JobRun> RunJob(JobConfig job, const CommandLine& line,
                              std::function<bool(const StatusAnswer&)> watch = nullptr);

// The warnings of a run's end on stderr, and why it failed or what stopped it. Returns the exit
// code.
int PrintEnd(const RunEnd& end);

// RunJob, then its end (PrintEnd) and its report on stderr. Returns the exit code.
int RunJobAndReport(const JobConfig& job, const CommandLine& line);

// One message on stderr, "satrap: ...". Returns 1.
int PrintError(const absl::Status& status);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_CLI_RUN_JOB_H_
