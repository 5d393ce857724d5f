#include "nn_worker/report/metrics_file.h"

#include "common/file/file_error.h"

namespace satrap {

absl::StatusOr<std::unique_ptr<MetricsFile>> MetricsFile::Create(const std::string& run_dir) {
  const std::string path = run_dir + "/metrics.jsonl";
  std::FILE* file = std::fopen(path.c_str(), "ae");
  if (file == nullptr) return FileError("open", path);
  return std::unique_ptr<MetricsFile>(new MetricsFile(file));
}

MetricsFile::~MetricsFile() { std::fclose(file_); }

void MetricsFile::Append(absl::string_view line) {
  MutexLock lock(&mutex_);
  std::fwrite(line.data(), 1, line.size(), file_);
  std::fputc('\n', file_);
  std::fflush(file_);
}

}  // namespace satrap
