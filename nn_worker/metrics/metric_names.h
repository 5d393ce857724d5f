// The values of MetricValues as reports show them. Thread-safe.

#ifndef SATRAP_NN_WORKER_METRICS_METRIC_NAMES_H_
#define SATRAP_NN_WORKER_METRICS_METRIC_NAMES_H_

#include <string>

#include "google/protobuf/message.h"
#include "proto/metrics.pb.h"

namespace satrap {

// Sets the fields of `to`, a ShownValues or an EvaluationLine, that have the names of values.
// `samples` is always set, other values that a task does not have are not.
void CopyMetrics(const MetricValues& values, google::protobuf::Message* to);

// For people: "AUC 0.71234, logloss 0.51234, NE 0.9123", or "RMSE 0.92345, MAE 0.72345". The
// calibration is left out, because that of one checkpoint says little (docs/quality.md). A loss
// over candidates has no metric here, and the text says so: it is judged by what its towers
// retrieve.
std::string MetricsText(const MetricValues& values);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_METRICS_METRIC_NAMES_H_
