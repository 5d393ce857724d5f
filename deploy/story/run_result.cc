#include "deploy/story/run_result.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checked_text.h"
#include "common/checkpoint/ledger/ledger.h"
#include "common/checkpoint/manifest.h"
#include "common/checkpoint/run_log.h"
#include "data_loader/batch/quarantine_files.h"
#include "data_loader/synthetic/bayes_auc.h"
#include "deploy/launcher/process/run_folder.h"
#include "deploy/launcher/process/run_progress.h"
#include "nn_worker/report/warm_start_report.h"

namespace satrap {
namespace {

// The manifest of a run's newest cut; after training, that is the cut at its end. Absent if there
// is no cut.
absl::StatusOr<absl::optional<CheckpointManifest>> NewestCut(const std::string& run_dir) {
  ASSIGN_OR_RETURN(const RunProgress progress, ReadRunProgress(run_dir));
  if (!progress.cut.has_value()) return absl::nullopt;
  ASSIGN_OR_RETURN(CheckpointManifest manifest,
                   ReadManifest(FolderOfCut(run_dir, progress.cut->cut())));
  return manifest;
}

absl::Status AddReductions(const JobConfig& job, RunReport* report) {
  if (job.action() != JobConfig::TRAIN || !job.evaluation().has_reduce_on_plateau()) {
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const absl::optional<CheckpointManifest> cut, NewestCut(job.run_dir()));
  if (!cut.has_value()) return absl::OkStatus();
  report->learning_rate_factor = cut->position().plateau().factor();
  report->reductions = cut->position().plateau().reductions();
  return absl::OkStatus();
}

// Adds to the report what the run has taken from its initial model (init_from), as rank 0 wrote it.
absl::Status AddWarmStart(const JobConfig& job, RunReport* report) {
  if (job.action() != JobConfig::TRAIN || job.init_from().empty()) return absl::OkStatus();
  WarmStartResult result;
  const absl::Status read =
      ReadCheckedText(job.run_dir() + kWarmStartFile, DiskFileSystem(), &result);
  if (absl::IsNotFound(read)) return absl::OkStatus();  // it was begun by an older build
  if (read.ok()) report->warm_start = std::move(result);
  return read;
}

}  // namespace

RunReport ReportOf(const JobConfig& job, const StatusAnswer& status, double wall_seconds,
                   const std::vector<std::string>& of_data, std::vector<std::string>* problems) {
  RunReport report = MakeRunReport(job, status, wall_seconds);
  if (job.data().has_synthetic() && report.result.has_test()) {
    report.bayes_auc = ComputeBayesAuc(job.data().synthetic()).of_test_labels;
  }
  for (const std::string& warning : of_data) report.warnings.push_back(warning);
  const absl::Status reductions = AddReductions(job, &report);
  if (!reductions.ok()) {
    problems->push_back(
        absl::StrCat("the report does not say by how much the learning rates were reduced: ",
                     reductions.message()));
  }
  const absl::Status warm_start = AddWarmStart(job, &report);
  if (!warm_start.ok()) {
    problems->push_back(absl::StrCat(
        "the report does not say what was taken from the initial model: ", warm_start.message()));
  }
  return report;
}

absl::Status WriteReport(const RunReport& report, const std::string& copy) {
  const std::string json = ReportJson(report) + "\n";
  RETURN_IF_ERROR(WriteFileAtomically(report.run_dir + "/report.json", json));
  RETURN_IF_ERROR(WriteFileAtomically(report.run_dir + "/report.txt", ReportText(report)));
  // Write the user's own file last: if that fails, the run folder already has the report.
  return copy.empty() ? absl::OkStatus() : WriteFileAtomically(copy, json);
}

absl::Status MergeBadRecords(const JobConfig& job, const std::string& run_dir) {
  if (job.action() != JobConfig::TRAIN) {
    return MergeQuarantine(run_dir, /*ledger=*/nullptr).status();
  }
  ASSIGN_OR_RETURN(const absl::optional<CheckpointManifest> cut, NewestCut(run_dir));
  if (!cut.has_value()) return MergeQuarantine(run_dir, /*ledger=*/nullptr).status();
  ASSIGN_OR_RETURN(const Ledger ledger, Ledger::FromState(cut->ledger()));
  return MergeQuarantine(run_dir, &ledger).status();
}

}  // namespace satrap
