// Reads the metrics that a role of a run in progress serves over HTTP (common/metrics/metrics.h).

#ifndef SATRAP_DEPLOY_CLI_BENCH_METRICS_PAGE_H_
#define SATRAP_DEPLOY_CLI_BENCH_METRICS_PAGE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

namespace satrap {

// The whole answer to a GET of /metrics at `address`, "127.0.0.1:port". UNAVAILABLE, with a message
// that names the address, if the address cannot be reached or sends nothing for `timeout_ms`.
absl::StatusOr<std::string> ReadMetricsPage(const std::string& address, int64_t timeout_ms);

// The sum of `metric` over its labels; absent if the page has no such metric.
absl::optional<double> SumOfMetric(absl::string_view page, absl::string_view metric);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_CLI_BENCH_METRICS_PAGE_H_
