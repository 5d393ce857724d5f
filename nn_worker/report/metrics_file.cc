#include "nn_worker/report/metrics_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/file/file_error.h"

namespace satrap {
namespace {

int OpenToAppend(const std::string& path) {
  return open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
}

// Used by one thread at a time.
class AppendedFile {
 public:
  AppendedFile(std::string path, const FileLimits& limits, int fd)
      : path_(std::move(path)), limits_(limits), fd_(fd) {}
  ~AppendedFile() { close(fd_); }
  AppendedFile(const AppendedFile&) = delete;
  AppendedFile& operator=(const AppendedFile&) = delete;

  bool WriteLine(absl::string_view line) {
    // If only the beginning of the last line could be written, a newline ends that line first.
    const std::string bytes = absl::StrCat(broken_ ? "\n" : "", line, "\n");
    for (size_t written = 0; written < bytes.size();) {
      const ssize_t more = write(fd_, bytes.data() + written, bytes.size() - written);
      if (more < 0 && errno == EINTR) continue;
      if (more < 0) {
        broken_ = broken_ || written > 0;
        return false;
      }
      written += static_cast<size_t>(more);
    }
    broken_ = false;
    CutIfTooLong();
    return true;
  }

 private:
  // If no new file can be opened, lines are still appended to the old one under its new name.
  void CutIfTooLong() {
    struct stat file;
    if (fstat(fd_, &file) != 0 || !S_ISREG(file.st_mode) || file.st_size <= limits_.bytes) return;
    if (!MoveToHistory(path_, limits_.older).ok()) return;
    const int next = OpenToAppend(path_);
    if (next < 0) return;
    close(fd_);
    fd_ = next;
  }

  const std::string path_;
  const FileLimits limits_;
  int fd_;
  bool broken_ = false;
};

}  // namespace

absl::StatusOr<std::unique_ptr<MetricsFile>> MetricsFile::Create(const std::string& run_dir,
                                                                 const FileLimits& limits) {
  const std::string path = run_dir + "/metrics.jsonl";
  const int fd = OpenToAppend(path);
  if (fd < 0) return FileError("open", path);
  auto file = std::make_shared<AppendedFile>(path, limits, fd);
  return std::unique_ptr<MetricsFile>(new MetricsFile(
      [file = std::move(file)](absl::string_view line) { return file->WriteLine(line); }));
}

}  // namespace satrap
