#include "deploy/launcher/process/run_progress.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/entries/job_of_run.h"
#include "common/checkpoint/entries/run_end.h"
#include "common/checkpoint/manifest.h"
#include "common/config/job_change.h"
#include "deploy/launcher/process/cut_check.h"
#include "deploy/report/run_report.h"

namespace satrap {
namespace {

// The phase of rank 0 from the time when it scores the test stream. Nothing is trained any more in
// this phase.
constexpr char kTesting[] = "testing";

uint64_t TimeOfCut(const RunLog& log, const std::string& cut) {
  for (const RunLogEntry& entry : log.entries()) {
    if (entry.has_cut() && entry.cut().cut() == cut) return entry.unix_ms();
  }
  return 0;
}

}  // namespace

absl::StatusOr<RunProgress> ReadRunProgress(const std::string& run_dir) {
  ASSIGN_OR_RETURN(const RunLog log, RunLog::Open(run_dir, DiskFileSystem()));
  RunProgress progress;
  if (const GenerationEntry* newest = log.last_generation(); newest != nullptr) {
    progress.generation = newest->generation();
    progress.began = newest->began();
    progress.job = *JobOfNext(log.entries());
    progress.drops_newest = DroppedChange(log.entries()) != nullptr;
    const JobConfig* before = JobToGoBackTo(log.entries(), *progress.job);
    if (before != nullptr) progress.job_before = *before;
  }
  for (const RunLogEntry& entry : log.entries()) {
    if (entry.has_dropped()) progress.dropped.push_back(entry.dropped());
  }
  if (const std::string start = log.next_start(); !start.empty()) {
    const CutEntry* entry = log.FindCut(start);
    progress.cut = entry == nullptr ? CutEntry() : *entry;
    progress.cut->set_cut(start);
    progress.cut_unix_ms = TimeOfCut(log, start);
    const auto manifest = ReadManifest(FolderOfCut(run_dir, start));
    // Without a manifest the message only lacks some counts, which is no reason to fail here. If
    // the cut is damaged, the roles find that when they load it.
    if (manifest.ok()) {
      if (entry == nullptr) progress.cut->set_step(manifest->step());
      progress.cut_samples = manifest->position().samples();
    }
  }
  progress.restarts = RestartsIn(log.entries());
  if (const EndEntry* end = log.end(); end != nullptr) {
    if (StateOf(*end) == FINISHED) {
      progress.result = end->result();
    } else {
      progress.end = *end;
    }
  }
  return progress;
}

bool SetEndOfLog(const RunProgress& progress, StatusAnswer* status) {
  if (!progress.result.has_value() && !progress.end.has_value()) return false;
  status->set_state(progress.end.has_value() ? progress.end->state() : FINISHED);
  if (progress.end.has_value()) *status->mutable_ending() = progress.end->ending();
  if (progress.result.has_value()) *status->mutable_result() = *progress.result;
  return true;
}

absl::StatusOr<std::string> GoBack(const absl::Status& started, const JobConfig& job,
                                   RunProgress* progress) {
  if (!absl::IsFailedPrecondition(started) || !progress->job_before.has_value()) return started;
  // If a user has just asked for this job, the log does not have it yet. Then do not go back to the
  // job before it, but return the error.
  if (!JobChangeText(*progress->job, job).empty()) return started;
  DroppedEntry dropped;
  dropped.set_change(JobChangeText(*progress->job_before, job));
  dropped.mutable_ended()->set_text(std::string(started.message()));
  progress->job = progress->job_before;
  return DroppedText(dropped);
}

std::string DroppedText(const DroppedEntry& dropped) {
  return absl::StrCat("the change of the job is dropped: ", dropped.change(), "\n  ",
                      dropped.ended().text());
}

std::string BeginningText(const RunProgress& progress) {
  if (!progress.cut.has_value()) return "the beginning";
  return absl::StrCat("step ", CountText(progress.cut->step()), " (", progress.cut->cut(), ")");
}

std::string StartProblem(const std::string& run_dir, const RunProgress& progress) {
  if (!progress.cut.has_value()) return "";
  const auto log = RunLog::Open(run_dir, DiskFileSystem());
  if (!log.ok()) return std::string(log.status().message());
  return CutProblem(*log, run_dir, progress.cut->cut());
}

std::string ResumeText(const std::string& run_dir, const RunProgress& progress,
                       const std::string& shown_dir) {
  const std::string problem = StartProblem(run_dir, progress);
  if (problem.empty()) {
    return absl::StrCat("`satrap resume ", shown_dir, "` continues from ", BeginningText(progress));
  }
  // Do not suggest continuing from this cut, because that would lead to the same error again.
  return absl::StrCat("the newest cut, ", progress.cut->cut(), ", is ", problem,
                      "\n  restore it, or continue from another cut with `satrap resume ",
                      shown_dir, " --from CUT`; `satrap checkpoint list ", shown_dir,
                      "` lists them");
}

bool LosesNoWork(const RunProgress& progress, const StatusAnswer& status) {
  if (!progress.cut.has_value() || status.train().step() > progress.cut->step()) return false;
  const bool is_own = progress.cut->generation() == status.generation();
  const bool training_was_over =
      progress.cut->last() && (is_own || status.train().phase() == kTesting);
  return training_was_over || (is_own && progress.cut->leave());
}

std::string LossText(const RunProgress& progress, const StatusAnswer& status) {
  if (LosesNoWork(progress, status)) return kNoWorkIsLost;
  const uint64_t from_step = progress.cut.has_value() ? progress.cut->step() : 0;
  if (status.train().step() > from_step) {
    const uint64_t lost = status.train().step() - from_step;
    std::string text = absl::StrCat("about ", Counted(lost, "step"));
    if (status.train().samples() > progress.cut_samples &&
        (from_step == 0 || progress.cut_samples > 0)) {
      absl::StrAppend(&text, " (",
                      Counted(status.train().samples() - progress.cut_samples, "sample"), ")");
    }
    return text + (lost == 1 ? " after it is lost" : " after it are lost");
  }
  // The last report may be a second old, so steps may have been trained although it shows none.
  return "at most the work after it is lost";
}

}  // namespace satrap
