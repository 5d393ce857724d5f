// Values of an evaluation pass that no model should have: then something is wrong with the data or
// the job, and nobody looks at numbers that are only printed.
//
// Thread-safe: a function of its arguments.

#ifndef SATRAP_NN_WORKER_METRICS_DOUBTFUL_METRICS_H_
#define SATRAP_NN_WORKER_METRICS_DOUBTFUL_METRICS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "proto/job.pb.h"
#include "proto/metrics.pb.h"

namespace satrap {

// A line for each task with a normalised entropy above 1, an AUC below .45 or a calibration outside
// [.5, 2], if it has 100 samples of each class at least: which, and what most likely is the cause.
// Without a line end. `pass` names the data: "test". `train_label_rate`: of the records that the
// task that is judged was trained on; absent: not known.
std::vector<std::string> DoubtfulMetrics(const JobConfig& job, absl::string_view pass,
                                         const MetricValues& values,
                                         absl::optional<double> train_label_rate);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_METRICS_DOUBTFUL_METRICS_H_
