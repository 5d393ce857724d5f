#include "deploy/pod/role_log.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <deque>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/file/file_error.h"
#include "common/thread/clock.h"
#include "common/thread/mutex.h"
#include "deploy/launcher/process/child_process.h"

namespace satrap {
namespace {

constexpr size_t kReadBytes = 65536;
constexpr size_t kTailBytes = 65536;
constexpr size_t kMostLines = 100;  // waiting lines of the supervisor
constexpr int kDrainPollMs = 10;

// Writes all bytes, or as many as can be written. Returns whether all are written.
bool WriteAll(int fd, absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

// The log file, kept under its size limit. Only the thread uses it.
class BoundedFile {
 public:
  BoundedFile(std::string path, const FileLimits& limits)
      : path_(std::move(path)), limits_(limits) {}
  ~BoundedFile() { Close(); }

  void Append(absl::string_view bytes) {
    if (fd_ < 0) Open();
    if (fd_ < 0) return;
    if (size_ > 0 && size_ + static_cast<int64_t>(bytes.size()) > limits_.bytes) {
      Close();
      // If this fails, the file continues to grow.
      MoveToHistory(path_, limits_.older).IgnoreError();
      Open();
      if (fd_ < 0) return;
    }
    // After an error the file is opened again for the next bytes, because its folder may be there
    // again by then.
    if (WriteAll(fd_, bytes)) {
      size_ += static_cast<int64_t>(bytes.size());
    } else {
      Close();
    }
  }

 private:
  void Open() {
    std::error_code error;
    std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), error);
    fd_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    struct stat file;
    size_ = fd_ >= 0 && fstat(fd_, &file) == 0 ? static_cast<int64_t>(file.st_size) : 0;
  }
  void Close() {
    if (fd_ >= 0) close(std::exchange(fd_, -1));
  }

  const std::string path_;
  const FileLimits limits_;
  int fd_ = -1;
  int64_t size_ = 0;
};

}  // namespace

struct RoleLog::Work {
  Work(const std::string& path, const FileLimits& limits, int echo)
      : echo(echo), file(path, limits) {}
  ~Work() {
    for (const int fd : {input, output, wake}) {
      if (fd >= 0) close(fd);
    }
  }

  const int echo;
  int input = -1;   // an end of the pipe
  int output = -1;  // an end of the pipe
  int wake = -1;
  BoundedFile file;

  mutable Mutex mutex;
  bool busy GUARDED_BY(mutex) = false;
  bool stopping GUARDED_BY(mutex) = false;
  std::deque<std::string> lines GUARDED_BY(mutex);
  std::string tail GUARDED_BY(mutex);
};

absl::StatusOr<std::unique_ptr<RoleLog>> RoleLog::Open(const std::string& path,
                                                       const FileLimits& limits, int echo) {
  auto work = std::make_shared<Work>(path, limits, echo);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return FileError("write log", path);
  work->output = ends[0];
  work->input = ends[1];
  work->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (work->wake < 0) return FileError("write log", path);
  std::unique_ptr<RoleLog> log(new RoleLog(std::move(work)));
  try {
    log->thread_ = std::thread(Serve, log->work_);
  } catch (const std::system_error& error) {
    return FileError("write log", path, error.code().value());
  }
  return log;
}

RoleLog::RoleLog(std::shared_ptr<Work> work) : work_(std::move(work)) {}

RoleLog::~RoleLog() {
  if (!thread_.joinable()) return;
  {
    MutexLock lock(&work_->mutex);
    work_->stopping = true;
  }
  eventfd_write(work_->wake, 1);
  thread_.detach();
}

int RoleLog::input() const { return work_->input; }

void RoleLog::Say(absl::string_view line) {
  {
    MutexLock lock(&work_->mutex);
    if (work_->lines.size() >= kMostLines) work_->lines.pop_front();
    work_->lines.push_back(absl::StrCat(line, "\n"));
  }
  eventfd_write(work_->wake, 1);
}

void RoleLog::Drain(int64_t timeout_ms) {
  const int64_t deadline_ms = MonotonicMs() + timeout_ms;
  while (true) {
    {
      MutexLock lock(&work_->mutex);
      int waiting = 0;
      const bool is_empty = ioctl(work_->output, FIONREAD, &waiting) == 0 && waiting == 0;
      if (is_empty && !work_->busy && work_->lines.empty()) return;
    }
    if (MonotonicMs() >= deadline_ms) return;
    poll(nullptr, 0, kDrainPollMs);
  }
}

void RoleLog::BeginRole() {
  MutexLock lock(&work_->mutex);
  work_->tail.clear();
}

std::string RoleLog::LastError() const {
  MutexLock lock(&work_->mutex);
  return LastErrorIn(work_->tail);
}

void RoleLog::Serve(const std::shared_ptr<Work>& work) {
  std::vector<char> buffer(kReadBytes);
  while (true) {
    pollfd waited[] = {{work->output, POLLIN, 0}, {work->wake, POLLIN, 0}};
    poll(waited, 2, -1);
    std::string bytes;
    {
      MutexLock lock(&work->mutex);
      if (work->stopping) return;
      work->busy = true;
      if ((waited[1].revents & POLLIN) != 0) {
        eventfd_t count;
        eventfd_read(work->wake, &count);
      }
      if ((waited[0].revents & POLLIN) != 0) {
        // poll said that there is something to read, so this does not block.
        const ssize_t n = read(work->output, buffer.data(), buffer.size());
        if (n > 0) bytes.assign(buffer.data(), static_cast<size_t>(n));
        work->tail += bytes;
        if (work->tail.size() > kTailBytes) {
          work->tail.erase(0, work->tail.size() - kTailBytes);
        }
      }
      for (const std::string& line : work->lines) bytes += line;
      work->lines.clear();
    }
    // If one of the two writes fails, the other is still made.
    WriteAll(work->echo, bytes);
    work->file.Append(bytes);
    MutexLock lock(&work->mutex);
    work->busy = false;
  }
}

}  // namespace satrap
