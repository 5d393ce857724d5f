// stop, checkpoint RUN, scale: the commands that wish something of a run in progress.

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/config/job_change.h"
#include "common/config/job_config.h"
#include "common/role/role_flags.h"
#include "deploy/cli/commands.h"
#include "deploy/cli/job_preparation.h"
#include "deploy/cli/run_connection.h"
#include "deploy/cli/run_job.h"
#include "deploy/launcher/run_folder.h"
#include "deploy/launcher/run_progress.h"
#include "deploy/report/run_report.h"

namespace satrap {
namespace {

// How long a launcher may take, after the run has stopped, to end its processes.
constexpr int64_t kReleaseMs = 90000;

absl::Status Stop(const std::string& run_dir) {
  ASSIGN_OR_RETURN(const auto connection, RunConnection::Open(run_dir));
  WishRequest request;
  request.set_kind(WishRequest::STOP);
  const absl::StatusOr<StatusAnswer> stopped = connection->Fulfil(
      request,
      [](const StatusAnswer& status, uint64_t, uint64_t) { return status.state() == STOPPED; });
  if (!stopped.ok() && !absl::IsUnavailable(stopped.status())) return stopped.status();
  // Who resumes the run while its launcher still ends processes would be refused.
  if (!WaitUntilReleased(run_dir, kReleaseMs)) {
    return absl::DeadlineExceededError(
        absl::StrCat("run ", run_dir, " has stopped, but ", RunnerOf(run_dir),
                     " has not ended its processes within ", kReleaseMs / 1000, " s"));
  }
  ASSIGN_OR_RETURN(const RunProgress after, ReadRunProgress(run_dir));
  if (after.result.has_value()) {
    return absl::FailedPreconditionError(
        absl::StrCat("run ", run_dir, " has finished; there was nothing to stop"));
  }
  if (after.job.has_value() && after.job->action() != JobConfig::TRAIN) {
    printf("run %s has stopped; it was no training, so repeat its command\n", run_dir.c_str());
    return absl::OkStatus();
  }
  const std::string how = ResumeText(run_dir, after, run_dir);
  if (!stopped.ok()) {
    // Its launcher knows more: it told what happened where it was started.
    return absl::AbortedError(absl::StrCat("run ", run_dir,
                                           " ended before it said that it had stopped; ", how,
                                           "; at most the work after it is lost"));
  }
  const bool saved = absl::StrContains(stopped->stop_reason(), kNothingIsLost);
  if (!saved) fprintf(stderr, "satrap: warning: %s\n", stopped->stop_reason().c_str());
  printf("run %s has stopped%s; %s\n", run_dir.c_str(),
         saved ? absl::StrCat("; ", kNoWorkIsLost).c_str() : "", how.c_str());
  return absl::OkStatus();
}

absl::Status TakeCut(const std::string& run_dir) {
  ASSIGN_OR_RETURN(const auto connection, RunConnection::Open(run_dir));
  WishRequest request;
  request.set_kind(WishRequest::CUT);
  ASSIGN_OR_RETURN(
      const StatusAnswer status,
      connection->Fulfil(request, [](const StatusAnswer& now, uint64_t generation, uint64_t wish) {
        return now.generation() == generation && now.fulfilled_wish() >= wish;
      }));
  const CutStatus& cut = status.last_cut();
  printf("%s: step %s, %s, written in %s\n", FolderOfCut(run_dir, cut.cut()).c_str(),
         CountText(cut.step()).c_str(), BytesText(cut.bytes()).c_str(),
         DurationText(cut.seconds()).c_str());
  return absl::OkStatus();
}

absl::Status Scale(const std::string& run_dir, const std::vector<std::string>& sets) {
  ASSIGN_OR_RETURN(const auto connection, RunConnection::Open(run_dir));
  ASSIGN_OR_RETURN(const RunProgress progress, ReadRunProgress(run_dir));
  if (!progress.job.has_value()) return absl::UnavailableError("the run is just starting");
  const absl::StatusOr<JobConfig> changed = ChangedJob(*progress.job, sets);
  if (!changed.ok()) {
    return CannotChange(absl::StrCat("run ", run_dir, " cannot be scaled"), changed.status());
  }
  ASSIGN_OR_RETURN(const JobConfig same, ChangedJob(*progress.job, {}));
  const JobConfig& job = *changed;
  if (ResolvedJobText(job) == ResolvedJobText(same)) {
    printf("run %s has these values already: nothing changes, and it is not restarted\n",
           run_dir.c_str());
    return absl::OkStatus();
  }
  WishRequest request;
  request.set_kind(WishRequest::SCALE);
  *request.mutable_job() = job;
  const uint64_t wanted = JobFingerprint(job);
  ASSIGN_OR_RETURN(
      const StatusAnswer status,
      connection->Fulfil(request, [&](const StatusAnswer& now, uint64_t generation, uint64_t) {
        if (now.generation() <= generation || now.state() != RUNNING) return false;
        // A generation that began after a loss, before the wish was fulfilled, has the old job.
        const auto newest = ReadRunProgress(run_dir);
        return newest.ok() && newest->job.has_value() && JobFingerprint(*newest->job) == wanted;
      }));
  printf(
      "generation %s runs: %s data loaders, %s embedding workers, %s embedding PSs, %s NN "
      "workers\n",
      CountText(status.generation()).c_str(),
      CountText(static_cast<uint64_t>(job.data_loader().replicas())).c_str(),
      CountText(static_cast<uint64_t>(job.embedding_worker().replicas())).c_str(),
      CountText(static_cast<uint64_t>(job.embedding_ps().replicas())).c_str(),
      CountText(static_cast<uint64_t>(job.nn_worker().replicas())).c_str());
  return absl::OkStatus();
}

int Print(const absl::Status& status) { return status.ok() ? 0 : PrintError(status); }

}  // namespace

int StopCommand(const CommandLine& line) {
  const auto run_dir = FindRun(line.arguments[0], kRunsDir);
  return run_dir.ok() ? Print(Stop(*run_dir)) : PrintError(run_dir.status());
}

int CheckpointCommand(const CommandLine& line) {
  const auto run_dir = FindRun(line.arguments[0], kRunsDir);
  return run_dir.ok() ? Print(TakeCut(*run_dir)) : PrintError(run_dir.status());
}

int ScaleCommand(const CommandLine& line) {
  const auto run_dir = FindRun(line.arguments[0], kRunsDir);
  if (!run_dir.ok()) return PrintError(run_dir.status());
  return Print(Scale(*run_dir, {line.arguments.begin() + 1, line.arguments.end()}));
}

}  // namespace satrap
