#include "deploy/cli/run_wishes.h"

#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/config/job_change.h"
#include "common/config/job_config.h"
#include "common/role/role_flags.h"
#include "deploy/cli/device_need.h"
#include "deploy/cli/job_preparation.h"
#include "deploy/cli/run_connection.h"
#include "deploy/launcher/process/run_folder.h"
#include "deploy/launcher/process/run_progress.h"
#include "deploy/report/run_report.h"

namespace satrap {

absl::StatusOr<WishEnd> StopRun(const std::string& run_dir, int64_t release_ms) {
  ASSIGN_OR_RETURN(const auto connection, RunConnection::Open(run_dir));
  WishRequest request;
  request.set_kind(WishRequest::STOP);
  const absl::StatusOr<StatusAnswer> stopped = connection->Fulfil(
      request,
      [](const StatusAnswer& status, uint64_t, uint64_t) { return status.state() == STOPPED; });
  if (!stopped.ok() && !absl::IsUnavailable(stopped.status())) return stopped.status();
  // Wait for the launcher to end its processes; until then the user could not resume the run.
  if (!WaitUntilReleased(run_dir, release_ms)) {
    return absl::DeadlineExceededError(absl::StrCat(
        "run ", run_dir, " has stopped, but ", RunnerOf(run_dir),
        " has not ended its processes within ", static_cast<double>(release_ms) * 1e-3, " s"));
  }
  ASSIGN_OR_RETURN(const RunProgress after, ReadRunProgress(run_dir));
  if (after.result.has_value()) {
    return absl::FailedPreconditionError(
        absl::StrCat("run ", run_dir, " has finished; there was nothing to stop"));
  }
  WishEnd end;
  if (after.job.has_value() && after.job->action() != JobConfig::TRAIN) {
    end.text = absl::StrCat("run ", run_dir,
                            " has stopped; it was not a training run, so repeat its command");
    return end;
  }
  const std::string how = ResumeText(run_dir, after, run_dir);
  // If the coordinator's last answer was lost, the log still shows whether the run took a last cut.
  const bool is_own = after.cut.has_value() && after.cut->generation() == after.generation;
  if (!stopped.ok() && !(is_own && after.cut->leave())) {
    StatusAnswer unknown;
    unknown.set_generation(after.generation);
    // Only the launcher knows more. The command that runs it has printed on stderr what happened.
    return absl::AbortedError(absl::StrCat("run ", run_dir,
                                           " ended without reporting that it had stopped; ", how,
                                           "; ", LossText(after, unknown)));
  }
  const bool saved = !stopped.ok() || stopped->ending().loss() == Ending::NOTHING;
  if (!saved) end.warning = stopped->ending().text();
  end.text = absl::StrCat("run ", run_dir, " has stopped; ",
                          saved ? absl::StrCat(kNoWorkIsLost, "; ") : "", how);
  if (after.drops_newest) absl::StrAppend(&end.text, "\n", DroppedText(after.dropped.back()));
  return end;
}

namespace {

absl::StatusOr<WishEnd> TakeCutBy(RunConnection* connection, const std::string& run_dir) {
  WishRequest request;
  request.set_kind(WishRequest::CUT);
  ASSIGN_OR_RETURN(
      const StatusAnswer status,
      connection->Fulfil(request, [](const StatusAnswer& now, uint64_t generation, uint64_t wish) {
        return now.generation() == generation && now.fulfilled_wish() >= wish;
      }));
  const CutStatus& cut = status.last_cut();
  WishEnd end;
  end.text = absl::StrCat(FolderOfCut(run_dir, cut.cut()), ": step ", CountText(cut.step()), ", ",
                          BytesText(cut.bytes()), ", written in ", DurationText(cut.seconds()));
  return end;
}

}  // namespace

absl::StatusOr<WishEnd> TakeCut(const std::string& run_dir) {
  ASSIGN_OR_RETURN(const auto connection, RunConnection::Open(run_dir));
  return TakeCutBy(connection.get(), run_dir);
}

absl::StatusOr<WishEnd> TakeCutInPod(const std::string& run_dir, uint64_t submission,
                                     const std::string& coordinator) {
  ASSIGN_OR_RETURN(const auto connection,
                   RunConnection::OpenInPod(run_dir, submission, coordinator));
  return TakeCutBy(connection.get(), run_dir);
}

namespace {

// The change of a job that `satrap scale` asks for.
struct SizeChange {
  JobConfig before;
  JobConfig job;
  bool changes_nothing = false;
};

absl::StatusOr<SizeChange> SizeChangeOf(const std::string& run_dir,
                                        const std::vector<std::string>& sets) {
  ASSIGN_OR_RETURN(const RunProgress progress, ReadRunProgress(run_dir));
  if (!progress.job.has_value()) return absl::UnavailableError("the run is just starting");
  absl::StatusOr<JobConfig> changed = ChangedJob(*progress.job, sets);
  if (!changed.ok()) {
    return CannotChange(absl::StrCat("run ", run_dir, " cannot be scaled"), changed.status());
  }
  SizeChange change;
  change.job = *std::move(changed);
  ASSIGN_OR_RETURN(change.before, ChangedJob(*progress.job, {}));
  change.changes_nothing = ResolvedJobText(change.job) == ResolvedJobText(change.before);
  if (change.changes_nothing) return change;
  // With fewer NN workers, each part is larger and needs more device memory. Check this now: the
  // new ranks would notice it only after the old ones have ended.
  const absl::Status need = DeviceNeedOf(change.job).status();
  if (!need.ok()) return CannotChange(absl::StrCat("run ", run_dir, " cannot be scaled"), need);
  return change;
}

absl::StatusOr<WishEnd> ScaleBy(RunConnection* connection, const std::string& run_dir,
                                const std::vector<std::string>& sets) {
  ASSIGN_OR_RETURN(const SizeChange change, SizeChangeOf(run_dir, sets));
  ASSIGN_OR_RETURN(const RunProgress progress, ReadRunProgress(run_dir));
  const JobConfig& job = change.job;
  WishEnd end;
  if (change.changes_nothing) {
    end.text = absl::StrCat("run ", run_dir,
                            " has these values already: nothing changes, and it is not restarted");
    return end;
  }
  WishRequest request;
  request.set_kind(WishRequest::SCALE);
  *request.mutable_job() = job;
  const uint64_t wanted = JobFingerprint(job);
  absl::optional<DroppedEntry> dropped;
  const absl::StatusOr<StatusAnswer> status =
      connection->Fulfil(request, [&](const StatusAnswer& now, uint64_t generation, uint64_t) {
        if (now.generation() <= generation) return false;
        const auto newest = ReadRunProgress(run_dir);
        if (!newest.ok()) return false;
        if (!newest->dropped.empty() && newest->dropped.back().generation() > generation) {
          dropped = newest->dropped.back();
          return true;
        }
        // A generation that began after a failure, before the wish was fulfilled, still has the old
        // job.
        return now.state() == RUNNING && newest->job.has_value() &&
               JobFingerprint(*newest->job) == wanted;
      });
  if (!status.ok() && !dropped.has_value()) {
    // Perhaps somebody stopped the run, and it ended before this command polled it again.
    const auto after = ReadRunProgress(run_dir);
    if (after.ok() && after->drops_newest && after->generation > progress.generation) {
      dropped = after->dropped.back();
    }
  }
  if (dropped.has_value()) {
    const bool goes_on = status.ok() && status->state() != STOPPED;
    return absl::FailedPreconditionError(
        absl::StrCat("run ", run_dir,
                     goes_on ? " continues as before"
                             : " is not running any more; `satrap resume` continues it with the "
                               "earlier job",
                     ", because the change could not begin: ", dropped->change(), "\n  ",
                     dropped->ended().text()));
  }
  RETURN_IF_ERROR(status.status());
  const auto replicas = [](int32_t number) { return CountText(static_cast<uint64_t>(number)); };
  end.text = absl::StrCat("generation ", CountText(status->generation()),
                          " runs: ", replicas(job.data_loader().replicas()), " data loaders, ",
                          replicas(job.embedding_worker().replicas()), " embedding workers, ",
                          replicas(job.embedding_ps().replicas()), " embedding PSs, ",
                          replicas(job.nn_worker().replicas()), " NN workers");
  return end;
}

}  // namespace

absl::StatusOr<WishEnd> ScaleRun(const std::string& run_dir, const std::vector<std::string>& sets) {
  ASSIGN_OR_RETURN(const auto connection, RunConnection::Open(run_dir));
  return ScaleBy(connection.get(), run_dir, sets);
}

absl::StatusOr<WishEnd> ScaleRunInPod(const std::string& run_dir, uint64_t submission,
                                      const std::string& coordinator,
                                      const std::vector<std::string>& sets) {
  ASSIGN_OR_RETURN(const auto connection,
                   RunConnection::OpenInPod(run_dir, submission, coordinator));
  return ScaleBy(connection.get(), run_dir, sets);
}

absl::StatusOr<ScalePlan> PlanScaleInPod(const std::string& run_dir, uint64_t submission,
                                         const std::string& coordinator,
                                         const std::vector<std::string>& sets) {
  ASSIGN_OR_RETURN(const auto connection,
                   RunConnection::OpenInPod(run_dir, submission, coordinator));
  ASSIGN_OR_RETURN(const StatusAnswer status, connection->Status());
  if (status.state() == FINISHED || status.state() == FAILED || status.state() == STOPPED) {
    return absl::FailedPreconditionError(
        absl::StrCat("the run has ended: ", RunState_Name(status.state())));
  }
  ASSIGN_OR_RETURN(const SizeChange change, SizeChangeOf(run_dir, sets));
  ScalePlan plan;
  plan.set_changes_nothing(change.changes_nothing);
  plan.set_start_seconds(change.job.kubernetes().start_seconds());
  for (const Role role : {DATA_LOADER, EMBEDDING_WORKER, EMBEDDING_PS, NN_WORKER}) {
    ScalePlan::Part* const part = plan.add_parts();
    part->set_role(role);
    part->set_now(ReplicasOf(role, change.before));
    part->set_wanted(ReplicasOf(role, change.job));
    for (const WaitingProcess& waiting : status.waiting()) {
      const Member& member = waiting.member();
      const bool is_beyond_job = member.index() >= static_cast<uint32_t>(part->now());
      if (member.role() == role && is_beyond_job) part->add_waiting(member.index());
    }
  }
  return plan;
}

}  // namespace satrap
