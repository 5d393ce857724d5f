// The warnings about a run: lines for people, without "warning" and without a line end.
//
// Thread-safe, except ProgressWarnings.

#ifndef SATRAP_DEPLOY_REPORT_RUN_WARNINGS_H_
#define SATRAP_DEPLOY_REPORT_RUN_WARNINGS_H_

#include <string>
#include <utility>
#include <vector>

#include "proto/control.pb.h"
#include "proto/job.pb.h"

namespace satrap {

// For a run that has ended: a label rate that changes with the position of records, and validations
// and tests whose values are doubtful (nn_worker/metrics/doubtful_metrics.h).
std::vector<std::string> WarningsOf(const JobConfig& job, const RunResult& result);

// For a run in training: a label rate that changes, and a metrics.jsonl that cannot be written to
// the disk.
std::vector<std::string> WarningsOf(const TrainProgress& progress);

// The warnings of a run in training, each of them once, even if its numbers change, or it
// disappears and comes again. Besides the above, a validation whose values are doubtful, if those
// of the one before were doubtful, too: the first ones may come before the model has learned much.
class ProgressWarnings {
 public:
  explicit ProgressWarnings(JobConfig job) : job_(std::move(job)) {}

  // The warnings of `progress` that have not been given before. `progress` is at least as new as
  // the last one.
  std::vector<std::string> New(const TrainProgress& progress);

 private:
  void JudgeValidation(const MetricValues& values, std::vector<std::string>* warnings);

  const JobConfig job_;
  bool moving_told_ = false;
  bool hanging_told_ = false;
  bool dropped_told_ = false;
  bool validation_told_ = false;
  std::string last_validation_;   // serialized
  int doubtful_validations_ = 0;  // in a row
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_REPORT_RUN_WARNINGS_H_
