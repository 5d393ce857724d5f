// What is told of a finished run: to people as a few lines, to programs as report.json.
//
// Thread-safe: functions of their arguments.

#ifndef SATRAP_DEPLOY_REPORT_RUN_REPORT_H_
#define SATRAP_DEPLOY_REPORT_RUN_REPORT_H_

#include <string>

#include "absl/types/optional.h"
#include "proto/control.pb.h"
#include "proto/job.pb.h"

namespace satrap {

enum class Validation {
  kNoData,  // the job has no validation data
  kNotDue,  // it has some, and no pass came due
  kRan,     // RunResult.valid is there if its metric was a number
};

struct RunReport {
  std::string job_name;
  JobConfig::Action action = JobConfig::TRAIN;
  RunResult result;
  Validation validation = Validation::kNoData;
  double wall_seconds = 0;  // from the command's start to the end of all processes
  // The most that any model can reach on a synthetic test set.
  absl::optional<double> bayes_auc;
  uint64_t quarantined = 0;  // bad records, over all loaders and streams
  uint64_t empty_lines = 0;
  bool reproducible = false;
  std::string run_dir;
};

// Takes what the coordinator knows at the end.
RunReport MakeRunReport(const JobConfig& job, const StatusAnswer& status, double wall_seconds);

// One JSON object in one line, without a line end:
//   job, action, samples, steps, train_seconds, wall_seconds, samples_per_second (samples by
//   train_seconds), valid{...}, test{...} (samples, auc, logloss, normalised_entropy,
//   calibration; absent if there was no such pass), bayes_auc (synthetic data), quarantined,
//   empty_lines, skipped_steps, stopped_early, best_step, tables[]{name, rows, bytes}, rows, bytes
//   (their sums), model_dir, model_digest (hexadecimal; equal models have equal ones), run_dir.
std::string ReportJson(const RunReport& report);

// The same for a terminal, some lines, the last with its line end.
std::string ReportText(const RunReport& report);

// "1,234,567"; "1.5 GB"; "1 h 02 min", "3 min 20 s", "12.3 s".
std::string CountText(uint64_t count);
std::string BytesText(uint64_t bytes);
std::string DurationText(double seconds);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_REPORT_RUN_REPORT_H_
