// The command `resume`: continues a run that has no processes any more. (For runs in a cluster, see
// cluster_commands.cc.)

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/config/job_change.h"
#include "deploy/cli/command_flags.h"
#include "deploy/cli/commands.h"
#include "deploy/cli/device_need.h"
#include "deploy/cli/job_preparation.h"
#include "deploy/cli/run_job.h"
#include "deploy/cli/show/cut_files.h"
#include "deploy/launcher/process/run_folder.h"
#include "deploy/launcher/process/run_progress.h"
#include "deploy/report/run_report.h"

namespace satrap {
namespace {

absl::StatusOr<JobRun> Resume(const std::string& run, ResumeFlags* flags) {
  if (!flags->image.empty() || flags->detach) {
    return absl::InvalidArgumentError(
        "--image and --detach are for a run in the cluster, and need --namespace N");
  }
  ASSIGN_OR_RETURN(const std::string run_dir, FindRun(run, kRunsDir));
  // Take the run's lock before reading anything: once it is held, no other process changes the run.
  ASSIGN_OR_RETURN(const std::unique_ptr<RunFolder> folder, RunFolder::Reopen(run_dir));
  ASSIGN_OR_RETURN(const RunProgress progress, ReadRunProgress(folder->path()));
  if (!progress.job.has_value()) {
    return absl::FailedPreconditionError(
        absl::StrCat("run ", run_dir, " never began; start it again with `satrap train`"));
  }
  if (progress.job->action() != JobConfig::TRAIN) {
    return absl::FailedPreconditionError(
        absl::StrCat("run ", run_dir, " is not a training run: repeat its command instead"));
  }
  if (progress.result.has_value()) {
    return absl::FailedPreconditionError(
        absl::StrCat("run ", run_dir, " has finished; `satrap train JOB --init_from ", run_dir,
                     "` trains a new run from its model"));
  }
  const auto changed = ChangedJob(*progress.job, flags->run.sets);
  if (!changed.ok()) {
    return CannotChange(absl::StrCat("run ", run_dir, " cannot continue with this job"),
                        changed.status());
  }
  JobConfig job = *changed;
  MakeDataRootAbsolute(&job);
  job.set_run_dir(folder->path());
  RETURN_IF_ERROR(DeviceNeedOf(job).status());
  LaunchOptions options;
  options.next_job = true;
  std::string beginning = BeginningText(progress);
  if (!flags->from_cut.empty()) {
    ASSIGN_OR_RETURN(const CutEntry cut, FindCutOfRun(folder->path(), flags->from_cut));
    options.from_cut = cut.cut();
    beginning = absl::StrCat("step ", CountText(cut.step()), " (", cut.cut(), ")");
  } else if (!StartProblem(folder->path(), progress).empty()) {
    // The coordinator would find this problem, too, but only after all processes were started.
    return absl::DataLossError(absl::StrCat(
        "run ", run_dir, " cannot continue: ", ResumeText(folder->path(), progress, run_dir)));
  }
  fprintf(stderr, "satrap: run %s continues from %s\n", run_dir.c_str(), beginning.c_str());
  return RunJobIn(*folder, job, options, flags->run);
}

}  // namespace

int ResumeCommand(const CommandCall& call) {
  ResumeFlags flags;
  const auto arguments = ParseArguments(call, flags.Table());
  if (!arguments.ok()) return PrintError(arguments.status());
  const absl::Status found = FindNamespace((*arguments)[0], &flags.space);
  if (!found.ok()) return PrintError(found);
  if (!flags.space.empty()) return ResumeInCluster((*arguments)[0], flags);
  const absl::StatusOr<JobRun> run = Resume((*arguments)[0], &flags);
  return ReportRun(run, flags.run);
}

}  // namespace satrap
