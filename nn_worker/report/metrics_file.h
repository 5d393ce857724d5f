// RUN/metrics.jsonl: one JSON object per line, written as it happens, for plotting a run. A file
// that is too long becomes metrics.jsonl.1, and a new one begins (common/file/file_history.h).
//
// A line that cannot be written is lost; the run continues, and does not wait for the disk
// (line_writer.h). Thread-safe.

#ifndef SATRAP_NN_WORKER_REPORT_METRICS_FILE_H_
#define SATRAP_NN_WORKER_REPORT_METRICS_FILE_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/file/file_history.h"
#include "nn_worker/report/line_writer.h"

namespace satrap {

class MetricsFile {
 public:
  // Opens the file in `run_dir` to append to it, or creates it. Errors name the file.
  static absl::StatusOr<std::unique_ptr<MetricsFile>> Create(const std::string& run_dir,
                                                             const FileLimits& limits = {});

  // `line` has no newline.
  void Append(absl::string_view line) { writer_.Append(line); }

  LineWriter::Trouble trouble() const { return writer_.trouble(); }

 private:
  explicit MetricsFile(std::function<bool(absl::string_view)> write) : writer_(std::move(write)) {}

  LineWriter writer_;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_REPORT_METRICS_FILE_H_
