#include "deploy/launcher/run_progress.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/manifest.h"
#include "deploy/report/run_report.h"

namespace satrap {

namespace {

// The entry of a cut. One that the log does not have is of another run.
CutEntry EntryOf(const std::string& cut, const RunLog& log) {
  CutEntry found;
  found.set_cut(cut);
  for (const RunLogEntry& entry : log.entries()) {
    if (entry.has_cut() && entry.cut().cut() == cut) found = entry.cut();
  }
  return found;
}

}  // namespace

absl::StatusOr<RunProgress> ReadRunProgress(const std::string& run_dir) {
  ASSIGN_OR_RETURN(const RunLog log, RunLog::Open(run_dir, DiskFileSystem()));
  RunProgress progress;
  if (const GenerationEntry* newest = log.last_generation(); newest != nullptr) {
    progress.generation = newest->generation();
    progress.cause = newest->cause();
    progress.job = newest->job();
  }
  if (const std::string start = log.next_start(); !start.empty()) {
    progress.cut = EntryOf(start, log);
    const auto manifest = ReadManifest(FolderOfCut(run_dir, start));
    // Only counts of a message depend on it; the roles check the cut when they load it.
    if (manifest.ok()) {
      progress.cut->set_step(manifest->step());
      progress.cut_samples = manifest->position().samples();
    }
  }
  if (const EndEntry* end = log.end(); end != nullptr) progress.result = end->result();
  return progress;
}

std::string BeginningText(const RunProgress& progress) {
  if (!progress.cut.has_value()) return "the beginning";
  return absl::StrCat("step ", CountText(progress.cut->step()), " (", progress.cut->cut(), ")");
}

std::string LostText(const RunProgress& progress, const StatusAnswer& status) {
  const uint64_t from_step = progress.cut.has_value() ? progress.cut->step() : 0;
  if (status.train().step() <= from_step) return "";
  std::string text = absl::StrCat("about ", CountText(status.train().step() - from_step), " steps");
  if (status.train().samples() > progress.cut_samples &&
      (from_step == 0 || progress.cut_samples > 0)) {
    absl::StrAppend(&text, " (", CountText(status.train().samples() - progress.cut_samples),
                    " samples)");
  }
  return text;
}

}  // namespace satrap
