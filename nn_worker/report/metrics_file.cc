#include "nn_worker/report/metrics_file.h"

#include "common/file/file_error.h"

namespace satrap {

absl::StatusOr<std::unique_ptr<MetricsFile>> MetricsFile::Create(const std::string& run_dir,
                                                                 const FileLimits& limits) {
  const std::string path = run_dir + "/metrics.jsonl";
  std::FILE* file = std::fopen(path.c_str(), "ae");
  if (file == nullptr) return FileError("open", path);
  return std::unique_ptr<MetricsFile>(new MetricsFile(path, limits, file));
}

MetricsFile::~MetricsFile() { std::fclose(file_); }

void MetricsFile::Append(absl::string_view line) {
  MutexLock lock(&mutex_);
  std::fwrite(line.data(), 1, line.size(), file_);
  std::fputc('\n', file_);
  std::fflush(file_);
  CutIfTooLong();
}

// If no new file can be opened, the old one goes on under its new name.
void MetricsFile::CutIfTooLong() {
  if (std::ftell(file_) <= limits_.bytes || !MoveToHistory(path_, limits_.older).ok()) return;
  std::FILE* next = std::fopen(path_.c_str(), "ae");
  if (next == nullptr) return;
  std::fclose(file_);
  file_ = next;
}

}  // namespace satrap
