// The values of MetricValues with the names that reports and metrics.jsonl give them: those of its
// fields. Values that a task does not have are left out. Thread-safe.

#ifndef SATRAP_NN_WORKER_METRICS_METRIC_NAMES_H_
#define SATRAP_NN_WORKER_METRICS_METRIC_NAMES_H_

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "proto/metrics.pb.h"

namespace satrap {

// Calls `number` or `count` for each value but `samples`, in the order of the fields.
void VisitMetrics(const MetricValues& values,
                  absl::FunctionRef<void(const char* name, double value)> number,
                  absl::FunctionRef<void(const char* name, uint64_t value)> count);

// For people: "AUC 0.71234, logloss 0.51234, NE 0.9123", or "RMSE 0.92345, MAE 0.72345". The
// calibration is left out, because that of one checkpoint says little (docs/quality.md). A loss
// over candidates has no metric here, and the text says so: it is judged by what its towers
// retrieve.
std::string MetricsText(const MetricValues& values);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_METRICS_METRIC_NAMES_H_
