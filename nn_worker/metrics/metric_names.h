// Converts the values of a MetricValues to the forms in which reports show them. Thread-safe.

#ifndef SATRAP_NN_WORKER_METRICS_METRIC_NAMES_H_
#define SATRAP_NN_WORKER_METRICS_METRIC_NAMES_H_

#include <string>

#include "google/protobuf/message.h"
#include "proto/metrics.pb.h"

namespace satrap {

// `to` is a ShownValues or an EvaluationLine. Sets each field of `to` whose name is also the name
// of a field of `values`: `samples` always, and the other fields only if the task has the value.
void CopyMetrics(const MetricValues& values, google::protobuf::Message* to);

// For people: "AUC 0.71234, logloss 0.51234, NE 0.9123", or "RMSE 0.92345, MAE 0.72345". The
// calibration is left out, because the calibration of a single cut says little (docs/quality.md). A
// task with a loss over candidates has no metric here, and the text says so: it is judged by the
// items that its towers retrieve.
std::string MetricsText(const MetricValues& values);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_METRICS_METRIC_NAMES_H_
