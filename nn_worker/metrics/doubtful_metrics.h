// Finds values of an evaluation pass that no sound model has. Such a value shows that something is
// wrong with the data or the job, but nobody may notice it among the printed numbers.
//
// Thread-safe: the function depends only on its arguments.

#ifndef SATRAP_NN_WORKER_METRICS_DOUBTFUL_METRICS_H_
#define SATRAP_NN_WORKER_METRICS_DOUBTFUL_METRICS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "proto/job.pb.h"
#include "proto/metrics.pb.h"

namespace satrap {

// Returns a line, without a line end, for each doubtful task. A task is doubtful if it has at least
// 100 samples of each class and one of these values: a normalised entropy above 1, an AUC below
// .45, or a calibration outside [.5, 2]. The line names each such value, and the most likely cause.
// `pass` names the data, such as "test". `train_label_rate` is the label rate of the records that
// the judged task was trained on; absent if it is not known.
std::vector<std::string> DoubtfulMetrics(const JobConfig& job, absl::string_view pass,
                                         const MetricValues& values,
                                         absl::optional<double> train_label_rate);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_METRICS_DOUBTFUL_METRICS_H_
