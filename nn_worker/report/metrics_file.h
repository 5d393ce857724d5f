// RUN/metrics.jsonl: one JSON object per line, written as it happens, for plotting a run.
//
// A line that cannot be written is lost; the run goes on. Thread-safe.

#ifndef SATRAP_NN_WORKER_REPORT_METRICS_FILE_H_
#define SATRAP_NN_WORKER_REPORT_METRICS_FILE_H_

#include <cstdio>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/thread/mutex.h"

namespace satrap {

class MetricsFile {
 public:
  // Opens the file in `run_dir` to append to it, or creates it. Errors name the file.
  static absl::StatusOr<std::unique_ptr<MetricsFile>> Create(const std::string& run_dir);
  ~MetricsFile();

  // `line` has no newline.
  void Append(absl::string_view line);

 private:
  explicit MetricsFile(std::FILE* file) : file_(file) {}

  Mutex mutex_;
  std::FILE* const file_;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_REPORT_METRICS_FILE_H_
