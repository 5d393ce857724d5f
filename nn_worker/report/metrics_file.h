// RUN/metrics.jsonl: one JSON object per line, written as it happens, for plotting a run. When it
// is too long it becomes metrics.jsonl.1, and a new one begins (common/file/file_history.h).
//
// A line that cannot be written is lost; the run goes on. Thread-safe.

#ifndef SATRAP_NN_WORKER_REPORT_METRICS_FILE_H_
#define SATRAP_NN_WORKER_REPORT_METRICS_FILE_H_

#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/file/file_history.h"
#include "common/thread/mutex.h"

namespace satrap {

class MetricsFile {
 public:
  // Opens the file in `run_dir` to append to it, or creates it. Errors name the file.
  static absl::StatusOr<std::unique_ptr<MetricsFile>> Create(const std::string& run_dir,
                                                             const FileLimits& limits = {});
  ~MetricsFile();

  // `line` has no newline.
  void Append(absl::string_view line);

 private:
  MetricsFile(std::string path, const FileLimits& limits, std::FILE* file)
      : path_(std::move(path)), limits_(limits), file_(file) {}
  void CutIfTooLong() REQUIRES(mutex_);

  const std::string path_;
  const FileLimits limits_;
  Mutex mutex_;
  std::FILE* file_ GUARDED_BY(mutex_);
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_REPORT_METRICS_FILE_H_
