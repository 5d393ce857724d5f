// The warnings about a run: lines for people, without the word "warning" and without a line end.
//
// Thread-safe, except the classes.

#ifndef SATRAP_DEPLOY_REPORT_RUN_WARNINGS_H_
#define SATRAP_DEPLOY_REPORT_RUN_WARNINGS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "proto/control.pb.h"
#include "proto/job.pb.h"

namespace satrap {

// For a run that has ended: warns of a label rate that changes with the position of records, and of
// validations and tests whose values are doubtful (nn_worker/metrics/doubtful_metrics.h).
std::vector<std::string> WarningsOf(const JobConfig& job, const RunResult& result);

// For a run in training: warns of a label rate that changes, and of a metrics.jsonl that cannot be
// written to the disk.
std::vector<std::string> WarningsOf(const TrainProgress& progress);

// The warnings of a run in training. Each is given only once, even if its numbers change, or if it
// disappears and comes again. They include those of WarningsOf. They also include a validation with
// doubtful values, but only if the validation before it had doubtful values, too: the first one may
// only show that the model had not learned much yet.
class ProgressWarnings {
 public:
  explicit ProgressWarnings(JobConfig job) : job_(std::move(job)) {}

  // The warnings of `progress` that have not been given before. REQUIRES: `progress` is at least as
  // new as in the previous call
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

// Detects that a generation has abandoned another cut.
class AbandonedCuts {
 public:
  // The warning about the cut; empty if none was abandoned since the previous call.
  std::string New(const StatusAnswer& status);

 private:
  uint64_t generation_ = 0;
  uint64_t known_ = 0;
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_REPORT_RUN_WARNINGS_H_
