// The report of a finished run: a few lines for people, and report.json for programs.
//
// Thread-safe: the functions depend only on their arguments.

#ifndef SATRAP_DEPLOY_REPORT_RUN_REPORT_H_
#define SATRAP_DEPLOY_REPORT_RUN_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "common/base/count_text.h"
#include "proto/checkpoint.pb.h"
#include "proto/control.pb.h"
#include "proto/job.pb.h"

namespace satrap {

enum class Validation {
  kNoData,  // the job has no validation data
  kNotDue,  // the job has some, but no pass was due
  kRan,     // RunResult.valid is set if its metric was a number
};

struct RunReport {
  std::string job_name;
  JobConfig::Action action = JobConfig::TRAIN;
  RunResult result;
  Validation validation = Validation::kNoData;
  // The time from the start of the command to the end of all processes. If the run was resumed, the
  // time of earlier commands is not included, because it is not known.
  double wall_seconds = 0;
  // Only for synthetic test data: the best AUC that any model can reach.
  absl::optional<double> bayes_auc;
  // The number of bad records and empty lines. For the train stream the ledger counts them; for the
  // valid and test streams the loaders of the last generation do.
  uint64_t quarantined = 0;
  uint64_t empty_lines = 0;
  uint64_t generations = 1;
  std::vector<Restart> restarts;  // the generations that followed a failure, ascending
  uint64_t resumes = 0;           // generations that began with `satrap resume`
  uint64_t scales = 0;            // generations that began with `satrap scale`
  bool reproducible = false;
  std::string batch_scaling;  // BatchScalingText of the job
  std::vector<std::string>
      warnings;  // WarningsOf the job and the result (run_warnings.h), then those of data (data_warnings.h)
  // Only with evaluation.reduce_on_plateau: the product of all reductions of the learning rates.
  absl::optional<double> learning_rate_factor;
  uint32_t reductions = 0;                     // the number of reductions in that product
  absl::optional<WarmStartResult> warm_start;  // if the run began with a model
  std::string run_dir;
};

// Makes the report from the coordinator's last status.
RunReport MakeRunReport(const JobConfig& job, const StatusAnswer& status, double wall_seconds);

// The content of report.json (ReportFile of proto/report.proto, docs/formats.md): one JSON object
// in one line, without a line end.
std::string ReportJson(const RunReport& report);

// The report as text for a terminal; every line ends with a line feed.
std::string ReportText(const RunReport& report);

// The mean gradient norm of all steps. REQUIRES: norms.steps() > 0
double MeanNorm(const GradientNorms& norms);

// "1.5 GB"; "1 h 02 min", "3 min 20 s", "12.3 s"; "2026-05-01T09:30:00Z".
std::string BytesText(uint64_t bytes);
std::string DurationText(double seconds);
std::string UtcText(int64_t unix_ms);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_REPORT_RUN_REPORT_H_
