#include "deploy/coordinator/claim/generation_claim.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/check.h"
#include "common/base/count_text.h"
#include "common/base/shortage.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/cut_identity.h"
#include "common/checkpoint/entries/job_of_run.h"
#include "common/checkpoint/entries/run_end.h"
#include "common/checkpoint/ledger/ledger.h"
#include "common/checkpoint/manifest.h"
#include "common/checkpoint/start_cut.h"
#include "common/config/job_change.h"
#include "common/config/job_config.h"
#include "common/config/validate/validate_job.h"
#include "common/role/cause_table.h"
#include "common/role/ending.h"
#include "deploy/coordinator/claim/cut_folders.h"
#include "deploy/coordinator/claim/start_position.h"

namespace satrap {
namespace {

constexpr size_t kCausesShown = 5;

// Whether the last generation in the log is only announced: the run changes its size, and no
// coordinator has begun that generation yet.
bool FollowsScale(const RunLog& log) {
  return !log.entries().empty() && log.entries().back().has_generation() &&
         log.entries().back().generation().began() == BEGAN_SCALE_ANNOUNCED;
}

// Appends an entry that drops the job of the log's newest generation.
absl::Status AppendDropped(const ClaimRequest& request, RunLog* log) {
  const GenerationEntry* last = log->last_generation();
  const JobConfig* before = last == nullptr ? nullptr : JobToGoBackTo(log->entries(), last->job());
  if (before == nullptr) return absl::FailedPreconditionError(request.ended.text());
  RunLogEntry entry;
  entry.set_unix_ms(static_cast<uint64_t>(request.unix_ms));
  entry.mutable_dropped()->set_generation(last->generation());
  entry.mutable_dropped()->set_change(JobChangeText(*before, last->job()));
  *entry.mutable_dropped()->mutable_ended() = request.ended;
  return log->Append(entry);
}

// Opens the run's log. If the folder belongs to somebody else, the error says who needs rights.
absl::StatusOr<RunLog> OpenLog(const std::string& run_dir, FileSystem* file_system,
                               uint64_t writer = 0) {
  absl::StatusOr<RunLog> log = RunLog::Open(run_dir, file_system, writer);
  if (!absl::IsPermissionDenied(log.status())) return log;
  return absl::PermissionDeniedError(
      absl::StrCat("run_dir ", run_dir, " cannot be used: ", log.status().message(),
                   ". This process runs as user ", geteuid(), " and group ", getegid(),
                   ", which need the right to read and write there"));
}

absl::Status CheckRestarts(const RunLog& log, const JobConfig& job) {
  // The limit of restarts does not apply after a changed job was dropped, because the earlier job
  // may still run.
  if (log.has_left() || DroppedChange(log.entries()) != nullptr ||
      log.restarts_without_cut() < job.max_restarts()) {
    return absl::OkStatus();
  }
  std::string message = absl::StrCat(
      "the run has restarted ", Counted(static_cast<uint64_t>(job.max_restarts()), "time"),
      " without a cut in between, which is the limit (max_restarts)");
  const std::string causes = RecentCauses(log);
  if (!causes.empty()) absl::StrAppend(&message, ": ", causes);
  return absl::FailedPreconditionError(
      absl::StrCat(message, ". Remove the cause, then continue with `satrap resume`"));
}

// Fills in the entry of the next generation.
absl::StatusOr<GenerationEntry> NextEntry(const ClaimRequest& request, const RunLog& log) {
  GenerationEntry entry;
  if (!request.from.empty() && log.FindCut(request.from) == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("the run's log has no cut '", request.from, "' to continue from"));
  }
  const GenerationEntry* last = log.last_generation();
  if (last == nullptr) {
    entry.set_generation(1);
    entry.set_run_id(request.run_id);
    *entry.mutable_job() = request.job;
    entry.set_began(BEGAN_START);
    return entry;
  }
  entry.set_generation(last->generation() + 1);
  entry.set_run_id(last->run_id());
  entry.set_cut(log.next_start());
  if (request.next_job) {
    RETURN_IF_ERROR(CheckJobChange(*JobOfNext(log.entries()), request.job));
    *entry.mutable_job() = request.job;
    if (!request.from.empty()) entry.set_cut(request.from);
    entry.set_began(BEGAN_RESUME);
    return entry;
  }
  *entry.mutable_job() = *JobOfNext(log.entries());
  // The run's folder may have been moved since the job was written.
  entry.mutable_job()->set_run_dir(request.job.run_dir());
  if (FollowsScale(log)) {
    entry.set_began(BEGAN_SCALED);
    return entry;
  }
  if (request.submission > SubmissionOf(log.entries())) {
    entry.set_began(BEGAN_RESUME);  // with the earlier job, because that of the resume is dropped
    return entry;
  }
  const bool moved = HasMoved(log.entries()) || request.ended.why() == Ending::MOVED;
  entry.set_began(moved ? BEGAN_MOVED : BEGAN_RESTART);
  // If the coordinator itself has moved, its ending was in its pod, which is gone. So take the
  // ending from the entry LEFT.
  const RunLogEntry& newest = log.entries().back();
  *entry.mutable_ended() = newest.has_left() ? newest.left().ended() : request.ended;
  if (entry.ended().text().empty()) {
    entry.mutable_ended()->set_text("the coordinator was started again");
  }
  return entry;
}

// The manifest of the cut in `folder`. Fails unless this is the cut that the log names, and a run
// can continue from it.
absl::StatusOr<CheckpointManifest> ReadStartCut(const RunLog& log, const std::string& folder,
                                                FileSystem* file_system) {
  uint32_t crc32c = 0;
  absl::StatusOr<CheckpointManifest> manifest = ReadManifest(folder, file_system, &crc32c);
  if (absl::IsNotFound(manifest.status())) {
    return absl::DataLossError(manifest.status().message());
  }
  RETURN_IF_ERROR(manifest.status());
  RETURN_IF_ERROR(CheckCutIdentity(log, folder, *manifest, crc32c));
  const auto ledger = Ledger::FromState(manifest->ledger());
  if (!ledger.ok()) {
    return absl::DataLossError(
        absl::StrCat(folder, "/manifest: ledger: ", ledger.status().message()));
  }
  return manifest;
}

// The job of the generation that made the cut.
JobConfig JobOfCut(const RunLog& log, const std::string& cut) {
  JobConfig job;
  for (const RunLogEntry& entry : log.entries()) {
    if (entry.has_cut() && entry.cut().cut() == cut) break;
    if (entry.has_generation()) job = entry.generation().job();
  }
  return job;
}

// Reads the cut that `entry` names, and sets what the generation takes from it.
absl::Status BeginFromCut(const ClaimRequest& request, const GenerationEntry& entry,
                          FileSystem* file_system, ClaimedGeneration* claimed) {
  const RunLog& log = claimed->log;
  if (!entry.cut().empty()) {
    claimed->cut_folder = FolderOfCut(request.job.run_dir(), entry.cut());
    const auto manifest = ReadStartCut(log, claimed->cut_folder, file_system);
    if (!manifest.ok()) {
      return MarkAsStartCutError(absl::Status(
          manifest.status().code(),
          absl::StrCat("the run cannot continue from its cut: ", manifest.status().message())));
    }
    claimed->position = manifest->position();
    claimed->ledger = manifest->ledger();
    if (manifest->has_order_fingerprint()) {
      claimed->order_fingerprint = manifest->order_fingerprint();
    }
    claimed->judged_anew = BeginFrom(JobOfCut(log, entry.cut()), claimed->job, &claimed->position);
  }
  if (!request.next_job || log.last_generation() == nullptr) return absl::OkStatus();
  return CheckTrainingEnd(*JobOfNext(log.entries()), claimed->job, claimed->position,
                          claimed->ledger);
}

absl::Status CheckFiles(const ClaimRequest& request, const ClaimedGeneration& claimed) {
  if (request.check_files == nullptr) return absl::OkStatus();
  JobConfig job = claimed.job;
  // A generation that begins from a cut does not read the model, which may be gone by then.
  if (!claimed.cut_folder.empty()) job.clear_init_from();
  return request.check_files(job);
}

// Returns the request. Fields that the log overrules are replaced.
ClaimRequest Effective(ClaimRequest request, const RunLog& log) {
  const uint64_t newest = SubmissionOf(log.entries());
  if (request.submission == 0) {
    // A resume whose job cannot be started still counts as a resume, but the run continues without
    // that job.
    const bool resumes = request.next_job || (request.drops_change && log.end() != nullptr);
    request.submission = std::max<uint64_t>(newest, 1) + (resumes && newest > 0 ? 1 : 0);
    return request;
  }
  request.next_job = newest > 0 && request.submission > newest;
  if (!request.next_job) request.from.clear();
  request.drops_change = false;
  return request;
}

absl::Status AppendEnd(const ClaimRequest& request, RunState state, const Ending& how,
                       RunLog* log) {
  RunLogEntry entry;
  entry.set_unix_ms(static_cast<uint64_t>(request.unix_ms));
  entry.mutable_end()->set_state(state);
  *entry.mutable_end()->mutable_ending() = how;
  entry.mutable_end()->set_submission(SubmissionOf(log->entries()));
  return log->Append(entry);
}

// In pods, if the storage fails but has worked for this submission before, the submission does not
// end: the mount may be broken only in this pod, and the next pod may have a working one.
absl::Status CheckStorage(const ClaimRequest& request, const RunLog& log, bool in_pods) {
  const absl::Status status = request.check_storage ? request.check_storage() : absl::OkStatus();
  const bool has_begun = in_pods && SubmissionOf(log.entries()) == request.submission;
  if (!has_begun || !absl::IsFailedPrecondition(status)) return status;
  return MarkShortage(
      absl::InternalError(absl::StrCat(
          "the run has begun, and continues once its storage works again: ", status.message())),
      Shortage::kMount);
}

// Whether a coordinator of `holder` has begun a generation, but a coordinator of another holder has
// begun the newest one.
bool IsFollowed(const RunLog& log, const std::string& holder) {
  bool has_begun = false;
  bool is_newest = false;
  for (const RunLogEntry& entry : log.entries()) {
    if (!entry.has_generation()) continue;
    // The previous generation's coordinator wrote this entry, so it does not show who begins the
    // generation.
    if (entry.generation().began() == BEGAN_SCALE_ANNOUNCED) continue;
    is_newest = entry.generation().holder() == holder;
    has_begun |= is_newest;
  }
  return !holder.empty() && has_begun && !is_newest;
}

// Claims nothing and returns the last generation. The coordinator then serves the run's end, or
// tells everybody to wait.
absl::StatusOr<ClaimedGeneration> WithoutClaim(const ClaimRequest& request, RunLog log) {
  // The process that linked the END may have died before the entry was durable.
  RETURN_IF_ERROR(log.Sync());
  ClaimedGeneration last(std::move(log));
  last.run_id = last.log.last_generation()->run_id();
  last.generation = last.log.last_generation()->generation();
  last.submission = SubmissionOf(last.log.entries());
  last.superseded = request.submission < last.submission;
  last.job = last.log.last_generation()->job();
  last.job.set_run_dir(request.job.run_dir());
  return last;
}

// If this returns an error, the log cannot be appended to, or it is not known whether it can. A
// compaction that fails but leaves the log usable is only a warning.
absl::Status CompactIfDue(const ClaimRequest& request, ClaimedGeneration* claimed) {
  RunLog& log = claimed->log;
  if (log.number() - log.compacted_number() < request.compact_after) return absl::OkStatus();
  const absl::Status status = log.Compact(static_cast<uint64_t>(request.unix_ms));
  if (status.ok()) return status;
  const absl::StatusOr<bool> foreign = log.HasForeignEntry();
  if (!foreign.ok() || *foreign) return status;
  claimed->warnings.push_back(absl::StrCat("the log is not compacted: ", status.message()));
  return absl::OkStatus();
}

void TidyUp(FileSystem* file_system, ClaimedGeneration* claimed) {
  CutFolders cuts(claimed->job.run_dir(), claimed->generation, file_system);
  for (const absl::Status& status :
       {claimed->log.RemoveDrafts(), claimed->log.RemoveCompacted(kRemoveAtOnce),
        cuts.RemoveUncommitted(claimed->log), cuts.MoveLinks(claimed->log)}) {
    if (!status.ok()) claimed->warnings.emplace_back(status.message());
  }
}

}  // namespace

std::string RecentCauses(const RunLog& log) {
  std::vector<std::string> causes;
  int left = log.restarts_without_cut();
  for (auto entry = log.entries().rbegin();
       entry != log.entries().rend() && left > 0 && causes.size() < kCausesShown; ++entry) {
    if (!entry->has_generation() || entry->generation().began() == BEGAN_MOVED) continue;
    // A generation's entry says how the previous generation ended.
    causes.push_back(absl::StrCat("generation ", entry->generation().generation() - 1, ": ",
                                  CauseText(entry->generation())));
    --left;
  }
  std::reverse(causes.begin(), causes.end());
  return absl::StrJoin(causes, "; ");
}

absl::StatusOr<JobConfig> ReadJobWithFolder(const std::string& config) {
  ASSIGN_OR_RETURN(JobConfig job, ReadResolvedJob(config));
  // Make the path of the run's folder absolute, because members may have other working directories.
  std::error_code error;
  const auto run_dir = std::filesystem::absolute(job.run_dir(), error);
  if (error || job.run_dir().empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(config, ": run_dir '", job.run_dir(), "' is not a folder"));
  }
  job.set_run_dir(run_dir.lexically_normal().string());
  return job;
}

absl::StatusOr<JobConfig> ReadJobToClaim(const std::string& config, FileSystem* file_system) {
  ASSIGN_OR_RETURN(JobConfig job, ReadJobWithFolder(config));
  ASSIGN_OR_RETURN(const RunLog log, OpenLog(job.run_dir(), file_system));
  if (log.last_generation() == nullptr) RETURN_IF_ERROR(ValidateJob(job));
  return job;
}

absl::StatusOr<ClaimedGeneration> ClaimGeneration(const ClaimRequest& asked,
                                                  FileSystem* file_system) {
  CHECK(asked.run_id != 0);
  const std::string& run_dir = asked.job.run_dir();
  ASSIGN_OR_RETURN(RunLog log, OpenLog(run_dir, file_system, asked.writer));
  const ClaimRequest request = Effective(asked, log);
  if (request.submission < SubmissionOf(log.entries()))
    return WithoutClaim(request, std::move(log));
  if (HasFinished(log.entries())) {
    // In pods the coordinator tells the result to whoever asks.
    if (asked.submission > 0 || !request.next_job) return WithoutClaim(request, std::move(log));
    return absl::FailedPreconditionError(
        absl::StrCat("the run in ", run_dir, " has finished: there is nothing to resume"));
  }
  if (log.end() != nullptr && !request.next_job && !request.drops_change) {
    return WithoutClaim(request, std::move(log));
  }
  if (!request.next_job && !request.is_asked && IsFollowed(log, request.holder)) {
    ASSIGN_OR_RETURN(ClaimedGeneration last, WithoutClaim(request, std::move(log)));
    last.waits_to_be_asked = true;
    return last;
  }
  RETURN_IF_ERROR(CheckStorage(request, log, /*in_pods=*/asked.submission > 0));
  const CutEntry* last_cut = LeftFor(log.entries(), CutEntry::STOP);
  if (last_cut != nullptr && !request.next_job) {
    RETURN_IF_ERROR(AppendEnd(request, STOPPED, StoppedAfter(*last_cut), &log));
    return WithoutClaim(request, std::move(log));
  }
  // Skip this if another process has already dropped the job: then the log's job is another one.
  if (request.drops_change && DroppedChange(log.entries()) == nullptr) {
    RETURN_IF_ERROR(AppendDropped(request, &log));
  }
  RunLogEntry entry;
  ASSIGN_OR_RETURN(*entry.mutable_generation(), NextEntry(request, log));
  entry.mutable_generation()->set_submission(request.submission);
  if (!request.holder.empty()) entry.mutable_generation()->set_holder(request.holder);
  const absl::Status left = entry.generation().began() == BEGAN_RESTART
                                ? CheckRestarts(log, entry.generation().job())
                                : absl::OkStatus();
  if (!left.ok()) {
    if (asked.submission == 0) return left;
    Ending failed = entry.generation().ended();
    failed.set_text(absl::StrCat(failed.text(), "\n  and ", left.message()));
    RETURN_IF_ERROR(AppendEnd(request, FAILED, failed, &log));
    return WithoutClaim(request, std::move(log));
  }
  ClaimedGeneration claimed(std::move(log));
  claimed.run_id = entry.generation().run_id();
  claimed.generation = entry.generation().generation();
  claimed.submission = request.submission;
  claimed.job = entry.generation().job();
  const absl::Status begun = BeginFromCut(request, entry.generation(), file_system, &claimed);
  if (!begun.ok()) {
    const Ending failure = FailureOf(COORDINATOR, 0, begun);
    // The log can record an end only for a submission that has begun.
    if (asked.submission == 0 || request.next_job || !NoRestartCures(failure, Ending())) {
      return begun;
    }
    RETURN_IF_ERROR(AppendEnd(request, FAILED, failure, &claimed.log));
    return WithoutClaim(request, std::move(claimed.log));
  }
  if (asked.submission > SubmissionOf(claimed.log.entries())) {
    RETURN_IF_ERROR(CheckFiles(request, claimed));
  }
  entry.set_unix_ms(static_cast<uint64_t>(request.unix_ms));
  RETURN_IF_ERROR(claimed.log.Append(entry));
  RETURN_IF_ERROR(CompactIfDue(request, &claimed));
  TidyUp(file_system, &claimed);
  return claimed;
}

}  // namespace satrap
