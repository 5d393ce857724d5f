#include "nn_worker/report/metrics_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/file/file_error.h"

namespace satrap {
namespace {

// One thread at a time.
class AppendedFile {
 public:
  explicit AppendedFile(int fd) : fd_(fd) {}
  ~AppendedFile() { close(fd_); }
  AppendedFile(const AppendedFile&) = delete;
  AppendedFile& operator=(const AppendedFile&) = delete;

  bool WriteLine(absl::string_view line) {
    // After a line of which only the beginning could be written.
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
    return true;
  }

 private:
  const int fd_;
  bool broken_ = false;
};

}  // namespace

absl::StatusOr<std::unique_ptr<MetricsFile>> MetricsFile::Create(const std::string& run_dir) {
  const std::string path = run_dir + "/metrics.jsonl";
  const int fd = open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0) return FileError("open", path);
  auto file = std::make_shared<AppendedFile>(fd);
  return std::unique_ptr<MetricsFile>(new MetricsFile(
      [file = std::move(file)](absl::string_view line) { return file->WriteLine(line); }));
}

}  // namespace satrap
