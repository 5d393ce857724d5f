// Reports the windows of a rank's scores (score_windows.h); each score was made before the rank
// trained on the record. A report consists of gauges of the last window of each kind, and of lines
// {"event":"window",...} of metrics.jsonl (docs/formats.md).
//
// Thread-safe as `write_line` is.

#ifndef SATRAP_NN_WORKER_REPORT_SCORE_REPORT_H_
#define SATRAP_NN_WORKER_REPORT_SCORE_REPORT_H_

#include <cstdint>
#include <functional>
#include <string>

#include "common/metrics/metrics.h"
#include "nn_worker/metrics/score_windows.h"

namespace satrap {

class ScoreReport {
 public:
  // `write_line` is called with each line, without the newline. The registry is not owned.
  ScoreReport(MetricsRegistry* registry, uint64_t generation,
              std::function<void(const std::string&)> write_line);

  void Report(const ScoreWindow& window);

 private:
  MetricsRegistry* const registry_;
  const uint64_t generation_;
  const std::function<void(const std::string&)> write_line_;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_REPORT_SCORE_REPORT_H_
