#include "deploy/launcher/process/run_folder.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"
#include "common/file/durable_file.h"
#include "common/file/file_error.h"
#include "common/thread/clock.h"

namespace satrap {
namespace {

namespace fs = std::filesystem;

std::string Timestamp() {
  const time_t now = time(nullptr);
  tm local;
  localtime_r(&now, &local);
  char text[32];
  strftime(text, sizeof(text), "%Y%m%d-%H%M%S", &local);
  return text;
}

using ByteSource = absl::FunctionRef<absl::Status(ByteSink)>;

struct FileCloser {
  void operator()(FILE* file) const { fclose(file); }
};
using UniqueFile = std::unique_ptr<FILE, FileCloser>;

// Opens a copy of the descriptor if `path` is a standard stream of this process. If the file were
// opened again, it would have a second file position, and the two would overwrite each other's
// output.
UniqueFile OpenInPlace(const std::string& path) {
  if (path == "/dev/stdout" || path == "/dev/stderr") {
    const int stream = path == "/dev/stdout" ? STDOUT_FILENO : STDERR_FILENO;
    const int copy = fcntl(stream, F_DUPFD_CLOEXEC, 0);
    return UniqueFile(copy < 0 ? nullptr : fdopen(copy, "w"));
  }
  return UniqueFile(fopen(path.c_str(), absl::StartsWith(path, "/dev/") ? "ae" : "we"));
}

// Writes into a link's target, a pipe or a device, which cannot be replaced or synced. If a pipe's
// reader has ended, as `head` does, that is no error, because it has read all that it wanted.
absl::Status WriteInto(const std::string& path, ByteSource source) {
  const UniqueFile file = OpenInPlace(path);
  if (file == nullptr) return FileError("write", path);
  bool is_left = false;
  const auto check = [&](bool written) {
    is_left = is_left || (!written && errno == EPIPE);
    return written || is_left ? absl::OkStatus() : FileError("write", path);
  };
  RETURN_IF_ERROR(source([&](absl::string_view bytes) {
    if (is_left) return absl::OkStatus();
    return check(fwrite(bytes.data(), 1, bytes.size(), file.get()) == bytes.size());
  }));
  return is_left ? absl::OkStatus() : check(fflush(file.get()) == 0);
}

absl::Status ReadInto(FILE* file, const std::string& path, ByteSink sink) {
  std::vector<char> block(1 << 20);
  size_t size = 0;
  while ((size = fread(block.data(), 1, block.size(), file)) > 0) {
    RETURN_IF_ERROR(sink(absl::string_view(block.data(), size)));
  }
  return ferror(file) == 0 ? absl::OkStatus() : FileError("read", path);
}

// The process that a lock file names; empty if it names none.
std::string OwnerIn(int fd) {
  char text[32] = {};
  const ssize_t size = pread(fd, text, sizeof(text) - 1, 0);
  const absl::string_view content(text, static_cast<size_t>(std::max<ssize_t>(size, 0)));
  // Ignore what follows: it may be the end of a longer number that is being overwritten.
  return std::string(content.substr(0, content.find('\n')));
}

// Replaces the content of the lock file. The number only helps people, so a full disk must not keep
// a run from continuing. But an outdated number would be worse than none.
void WriteOwner(int fd) {
  const std::string own = absl::StrCat(getpid(), "\n");
  // Write first and truncate afterwards, so that the file never gives up a page that it might not
  // get back on a full disk.
  const bool written = pwrite(fd, own.data(), own.size(), 0) == static_cast<ssize_t>(own.size());
  if (ftruncate(fd, written ? static_cast<off_t>(own.size()) : 0) != 0) return;
}

// Locks the file. Retries for a moment, because commands such as `satrap status` lock it briefly to
// check whether a process runs the run. Returns errno, or 0.
int LockForLong(int fd) {
  constexpr int kAttempts = 25;
  constexpr int kPeriodMs = 20;
  for (int attempt = 1; flock(fd, LOCK_EX | LOCK_NB) != 0; ++attempt) {
    if (errno != EWOULDBLOCK || attempt == kAttempts) return errno;
    poll(nullptr, 0, kPeriodMs);
  }
  return 0;
}

// "process 123"; or "another process" if that process has not written its number yet or could not.
std::string ProcessText(const std::string& owner) {
  return owner.empty() ? "another process" : absl::StrCat("process ", owner);
}

// Locks RUN/lock and writes the pid of this process into it. Returns the file's descriptor.
absl::StatusOr<int> LockRun(const std::string& run_dir) {
  const std::string path = run_dir + "/lock";
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return FileError("write", path);
  const int error = LockForLong(fd);
  if (error == 0) {
    WriteOwner(fd);
    return fd;
  }
  const std::string owner = OwnerIn(fd);
  close(fd);
  if (error != EWOULDBLOCK) return FileError("lock", path, error);
  return absl::FailedPreconditionError(
      absl::StrCat(run_dir, " is being run by ", ProcessText(owner),
                   ": stop it first, with `satrap stop ", run_dir, "`"));
}

absl::Status HoldsARun(const std::string& path) {
  return absl::FailedPreconditionError(absl::StrCat(path, " holds a run already"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<RunFolder>> RunFolder::Fill(const std::string& path) {
  std::error_code error;
  fs::create_directories(path + "/logs", error);
  if (error) return FileError("make folder", path + "/logs", error.value());
  ASSIGN_OR_RETURN(const int lock_fd, LockRun(path));
  // From here on the destructor releases the lock.
  auto sockets = SocketFolder::MakeInTemporaryFolder(path + "/sockets");
  const absl::Status made = sockets.status();
  std::unique_ptr<RunFolder> folder(
      new RunFolder(path, lock_fd, made.ok() ? *std::move(sockets) : nullptr));
  RETURN_IF_ERROR(made);
  return folder;
}

absl::StatusOr<std::unique_ptr<RunFolder>> RunFolder::Reopen(const std::string& path) {
  const fs::path absolute = fs::absolute(path).lexically_normal();
  // A slash at the end makes an empty last component; drop it.
  return Fill((absolute.has_filename() ? absolute : absolute.parent_path()).string());
}

absl::StatusOr<std::unique_ptr<RunFolder>> RunFolder::CreateUnder(const std::string& runs_dir,
                                                                  const std::string& name,
                                                                  bool is_latest) {
  std::error_code error;
  fs::create_directories(runs_dir, error);
  if (error) return FileError("make folder", runs_dir, error.value());
  const std::string first = absl::StrCat(name, "-", Timestamp());
  std::string run = first;
  // Runs that begin in the same second have the suffixes -2, -3, ...
  for (int attempt = 2; !fs::create_directory(absl::StrCat(runs_dir, "/", run), error); ++attempt) {
    if (error) {
      return FileError("make folder", absl::StrCat(runs_dir, "/", run), error.value());
    }
    run = absl::StrCat(first, "-", attempt);
  }
  if (is_latest) RETURN_IF_ERROR(ReplaceLink(run, runs_dir + "/latest"));
  return Fill(fs::absolute(runs_dir + "/" + run).lexically_normal().string());
}

absl::Status RunFolder::CheckFree(const std::string& path) {
  fs::path folder = fs::absolute(path).lexically_normal();
  std::error_code error;
  if (fs::exists(folder / "job.textproto", error)) return HoldsARun(folder.string());
  // Check the nearest parent folder that exists, because the missing ones would be made in it.
  while (!fs::exists(folder, error) && folder.has_relative_path()) folder = folder.parent_path();
  if (!fs::is_directory(folder, error)) return FileError("make folder", path, ENOTDIR);
  return access(folder.c_str(), W_OK | X_OK) == 0 ? absl::OkStatus()
                                                  : FileError("make folder", path);
}

absl::StatusOr<std::unique_ptr<RunFolder>> RunFolder::CreateAt(const std::string& path) {
  std::error_code error;
  const std::string absolute = fs::absolute(path).lexically_normal().string();
  fs::create_directories(absolute, error);
  if (error) return FileError("make folder", absolute, error.value());
  // Creating the job file claims the folder: O_EXCL lets only one process succeed.
  const std::string job_path = absolute + "/job.textproto";
  const int job_file = open(job_path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (job_file < 0 && errno == EEXIST) {
    return HoldsARun(absolute);
  }
  if (job_file < 0) return FileError("make file", job_path);
  close(job_file);
  auto folder = Fill(absolute);
  if (!folder.ok()) unlink(job_path.c_str());
  return folder;
}

RunFolder::~RunFolder() {
  struct stat info;
  const std::string job_path = JobPath();
  if (lstat(job_path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && info.st_size == 0) {
    unlink(job_path.c_str());
  }
  close(lock_fd_);
}

std::string RunFolder::JobPath() const { return path_ + "/job.textproto"; }

std::string RunFolder::LogPath(absl::string_view process) const {
  return absl::StrCat(path_, "/logs/", process, ".log");
}

std::string RunFolder::SocketAddress(absl::string_view process) const {
  return absl::StrCat("unix:", sockets_->path(), "/", process);
}

std::string RunFolder::EndingPath(absl::string_view process) const {
  return absl::StrCat(sockets_->path(), "/", process, ".ending");
}

absl::Status WriteFileAtomically(const std::string& path, absl::string_view content) {
  return WriteFileAtomically(path, [content](ByteSink sink) { return sink(content); });
}

absl::Status WriteFileAtomically(const std::string& path, ByteSource source) {
  struct stat info;
  if (lstat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) return WriteInto(path, source);
  ASSIGN_OR_RETURN(const std::unique_ptr<DurableFile> file, DurableFile::Create(path));
  RETURN_IF_ERROR(source([&](absl::string_view bytes) { return file->Append(bytes); }));
  return file->Commit();
}

absl::Status CopyFileAtomically(const std::string& from, const std::string& path) {
  const UniqueFile file(fopen(from.c_str(), "re"));
  if (file == nullptr) return FileError("read", from);
  return WriteFileAtomically(path, [&](ByteSink sink) { return ReadInto(file.get(), from, sink); });
}

absl::Status CheckWritable(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) == 0) {
    if (S_ISDIR(info.st_mode)) return FileError("write", path, EISDIR);
    if (access(path.c_str(), W_OK) != 0) return FileError("write", path);
  }
  if (lstat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) return absl::OkStatus();
  // A regular file is replaced by a new file in the same folder, so the folder must be writable.
  const std::string folder = (fs::path(path).parent_path() / ".").string();
  return access(folder.c_str(), W_OK | X_OK) == 0 ? absl::OkStatus() : FileError("write", path);
}

bool WaitUntilReleased(const std::string& run_dir, int64_t timeout_ms) {
  constexpr int kPeriodMs = 20;
  const int64_t deadline_ms = MonotonicMs() + timeout_ms;
  while (!RunnerOf(run_dir).empty()) {
    if (MonotonicMs() >= deadline_ms) return false;
    poll(nullptr, 0, kPeriodMs);
  }
  return true;
}

std::string RunnerOf(const std::string& run_dir) {
  const int fd = open((run_dir + "/lock").c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return "";
  // Use a shared lock. With an exclusive one, one of two commands that check at the same time would
  // take the other for the process that runs the run.
  const bool is_run = flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  const std::string owner = OwnerIn(fd);
  close(fd);
  return is_run ? ProcessText(owner) : "";
}

absl::StatusOr<std::string> FindRun(const std::string& run, const std::string& runs_dir) {
  std::error_code error;
  for (const std::string& candidate : {run, absl::StrCat(runs_dir, "/", run)}) {
    if (!run.empty() && fs::exists(candidate + "/job.textproto", error)) return candidate;
  }
  if (!run.empty()) {
    return absl::NotFoundError(
        absl::StrCat("no run '", run, "', neither here nor under ", runs_dir));
  }
  const std::string latest = runs_dir + "/latest";
  if (!fs::exists(latest + "/job.textproto", error)) {
    return absl::NotFoundError(absl::StrCat("there is no run under ", runs_dir));
  }
  return fs::canonical(latest, error).string();
}

}  // namespace satrap
