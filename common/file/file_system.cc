#include "common/file/file_system.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/file/file_error.h"
#include "common/file/hard_link.h"

namespace satrap {
namespace {

namespace fs = std::filesystem;

// Alignment in memory for direct writes, a multiple of the block size of usual disks.
constexpr size_t kAlignment = 4096;
// The size of one write. Smaller direct writes cost more processor time per byte.
constexpr size_t kBufferBytes = size_t{1} << 20;
static_assert(kBufferBytes % kAlignment == 0);

struct FreeMemory {
  void operator()(char* bytes) const { std::free(bytes); }
};
using AlignedBuffer = std::unique_ptr<char[], FreeMemory>;

// Writes past the page cache where the file system allows it (O_DIRECT). A cut is read again only
// after a process has died, so copying its gigabytes to the cache would gain nothing. It would also
// cost processor time of the kernel, which training would lose (docs/benchmarks.md, "What cuts
// cost").
//
// Each full buffer is one direct write. What is left at the end of a file goes through the page
// cache, because its size is not a multiple of the disk's block size. So does a small file, or one
// that is synced before its first full buffer. If a direct write is refused, the same bytes are
// written by an ordinary write, and so are all later ones: either the file system has no direct
// writes, or the ordinary write returns the true error.
class DiskFile final : public WritableFile {
 public:
  DiskFile(std::string path, int fd, AlignedBuffer buffer)
      : path_(std::move(path)), fd_(fd), buffer_(std::move(buffer)) {}

  ~DiskFile() override {
    // For callers that do not sync: the bytes must be in the file, but they need not be durable.
    WriteRest().IgnoreError();
    close(fd_);
  }

  absl::Status Append(absl::string_view bytes) override {
    while (!bytes.empty()) {
      const size_t n = std::min(bytes.size(), kBufferBytes - buffered_);
      std::memcpy(buffer_.get() + buffered_, bytes.data(), n);
      buffered_ += n;
      bytes.remove_prefix(n);
      if (buffered_ < kBufferBytes) break;
      // The first full buffer shows that the file is not small.
      if (!any_written_) direct_ = SetDirect(true);
      const absl::Status status = WriteBuffer();
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::Status Sync() override {
    const absl::Status status = WriteRest();
    if (!status.ok()) return status;
    // Bytes that bypassed the page cache need fsync, too: it also saves the list of the file's
    // blocks and empties the disk's own cache.
    return fsync(fd_) == 0 ? absl::OkStatus() : FileError("write", path_);
  }

 private:
  // False, with errno set, if the file system refuses.
  bool SetDirect(bool direct) {
    const int flags = fcntl(fd_, F_GETFL);
    return flags >= 0 && fcntl(fd_, F_SETFL, direct ? flags | O_DIRECT : flags & ~O_DIRECT) == 0;
  }

  // Writes the last bytes through the page cache. No direct writes follow.
  absl::Status WriteRest() {
    if (direct_ && !SetDirect(false)) return FileError("write", path_);
    direct_ = false;
    return WriteBuffer();
  }

  absl::Status WriteBuffer() {
    // Clears buffered_ first, so that the buffer is not written again after an error.
    const size_t size = std::exchange(buffered_, 0);
    size_t done = 0;
    while (done < size) {
      const ssize_t n = write(fd_, buffer_.get() + done, size - done);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && !direct_) return FileError("write", path_);
      if (n > 0) done += static_cast<size_t>(n);
      if (done == size || !direct_) continue;
      // Either the direct write was refused, or the disk is full, or a size limit lies within a
      // block. An ordinary write of the remaining bytes shows which.
      if (!SetDirect(false)) return FileError("write", path_);
      direct_ = false;
    }
    any_written_ = any_written_ || size > 0;
    return absl::OkStatus();
  }

  const std::string path_;
  const int fd_;
  const AlignedBuffer buffer_;
  size_t buffered_ = 0;
  bool any_written_ = false;
  bool direct_ = false;  // the file has O_DIRECT
};

// Reads without the buffer of stdio, because callers read in large pieces.
class DiskReader final : public ReadableFile {
 public:
  DiskReader(std::string path, int fd, uint64_t size_bytes)
      : path_(std::move(path)), fd_(fd), size_bytes_(size_bytes) {}
  ~DiskReader() override { close(fd_); }

  uint64_t size_bytes() const override { return size_bytes_; }

  absl::StatusOr<size_t> Read(absl::Span<char> bytes) override {
    size_t done = 0;
    while (done < bytes.size()) {
      const ssize_t got = read(fd_, bytes.data() + done, bytes.size() - done);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return FileError("read", path_);
      if (got == 0) break;
      done += static_cast<size_t>(got);
    }
    return done;
  }

  absl::Status Skip(uint64_t bytes) override {
    if (lseek(fd_, static_cast<off_t>(std::min(bytes, size_bytes_)), SEEK_CUR) >= 0) {
      return absl::OkStatus();
    }
    return errno == ESPIPE ? ReadableFile::Skip(bytes) : FileError("read", path_);
  }

 private:
  const std::string path_;
  const int fd_;
  const uint64_t size_bytes_;
};

class DiskLock final : public FileLock {
 public:
  explicit DiskLock(int fd) : fd_(fd) {}
  // Unlocks before closing: a process forked meanwhile may also hold the descriptor, and then
  // closing it here does not end the lock.
  ~DiskLock() override {
    flock(fd_, LOCK_UN);
    close(fd_);
  }

  int fd() const { return fd_; }

 private:
  const int fd_;
};

int OpenToLock(const std::string& path, LockKind kind) {
  if (kind == LockKind::kExclusive) {
    // NFS gives an exclusive lock only to a process that may write.
    const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (fd >= 0 || (errno != EACCES && errno != EPERM && errno != EROFS)) return fd;
  }
  return open(path.c_str(), O_RDONLY | O_CLOEXEC);
}

// The processes that hold a lock of `file`, from the lines of /proc/locks: "7: FLOCK  ADVISORY READ
// 123 fe:00:99 0 EOF". Some file systems show other device numbers there, so if no line has both
// the device and the inode, the inode alone counts. Processes of other machines and containers have
// no line, or a line with process number -1 or 0.
std::vector<int64_t> HoldersOf(const struct stat& file) {
  std::vector<int64_t> same_device, same_inode;
  const std::string device = absl::StrFormat("%02x:%02x", major(file.st_dev), minor(file.st_dev));
  std::ifstream locks("/proc/locks");
  for (std::string line; std::getline(locks, line);) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    int64_t pid = 0;
    if (words.size() < 6 || words[1] != "FLOCK" || !absl::SimpleAtoi(words[4], &pid) || pid <= 0) {
      continue;
    }
    const size_t colon = words[5].rfind(':');
    if (words[5].substr(colon + 1) != absl::StrCat(file.st_ino)) continue;
    same_inode.push_back(pid);
    if (words[5].substr(0, colon) == device) same_device.push_back(pid);
  }
  return same_device.empty() ? same_inode : same_device;
}

absl::Status StatusOf(absl::string_view doing, const std::string& path,
                      const std::error_code& error) {
  return error ? FileError(doing, path, error.value()) : absl::OkStatus();
}

class Disk final : public FileSystem {
 public:
  absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) override {
    const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0) return FileError("write", path);
    // Only those pages of the buffer that are written take memory, so a small file takes little.
    AlignedBuffer buffer(static_cast<char*>(std::aligned_alloc(kAlignment, kBufferBytes)));
    if (buffer == nullptr) {
      close(fd);
      return FileError("write", path, ENOMEM);
    }
    return std::make_unique<DiskFile>(path, fd, std::move(buffer));
  }

  absl::StatusOr<std::unique_ptr<ReadableFile>> Open(const std::string& path) override {
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return FileError("read", path);
    struct stat status;
    if (fstat(fd, &status) != 0) {
      const absl::Status error = FileError("read", path);
      close(fd);
      return error;
    }
    return std::make_unique<DiskReader>(path, fd, static_cast<uint64_t>(status.st_size));
  }

  absl::Status Rename(const std::string& from, const std::string& to) override {
    return std::rename(from.c_str(), to.c_str()) == 0 ? absl::OkStatus() : FileError("write", to);
  }

  absl::Status HardLink(const std::string& from, const std::string& to) override {
    const int error = HardLinkByCount(from, to, link);
    if (error == 0) return absl::OkStatus();
    const absl::Status status = FileError("link", to, error);
    return error == EEXIST ? absl::AlreadyExistsError(status.message()) : status;
  }

  absl::Status CreateLink(const std::string& target, const std::string& path) override {
    return symlink(target.c_str(), path.c_str()) == 0 ? absl::OkStatus() : FileError("link", path);
  }

  absl::Status CreateFolders(const std::string& path) override {
    std::error_code error;
    fs::create_directories(path, error);
    return StatusOf("create", path, error);
  }

  absl::Status Remove(const std::string& path) override {
    std::error_code error;
    fs::remove_all(path, error);
    return StatusOf("remove", path, error);
  }

  absl::StatusOr<std::vector<std::string>> List(const std::string& folder) override {
    std::vector<std::string> names;
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
         entry.increment(error)) {
      names.push_back(entry->path().filename().string());
    }
    if (error) return StatusOf("read", folder, error);
    return names;
  }

  absl::Status SyncFolder(const std::string& folder) override {
    const int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return FileError("open", folder);
    // The status is made before close() can change errno.
    const absl::Status status = fsync(fd) == 0 ? absl::OkStatus() : FileError("sync", folder);
    close(fd);
    return status;
  }

  absl::StatusOr<std::unique_ptr<FileLock>> TryLock(const std::string& path,
                                                    LockKind kind) override {
    const int fd = OpenToLock(path, kind);
    if (fd < 0) return FileError("lock", path);
    auto lock = std::make_unique<DiskLock>(fd);
    const int operation = kind == LockKind::kShared ? LOCK_SH : LOCK_EX;
    while (flock(fd, operation | LOCK_NB) != 0) {
      const int error = errno;
      if (error == EINTR) continue;
      const std::string why =
          absl::StrCat("cannot lock ", path, ": ", std::generic_category().message(error));
      return error == EWOULDBLOCK ? absl::UnavailableError(why) : absl::UnimplementedError(why);
    }
    // Another process may have removed the file, under a lock of its own, since it was opened here.
    // On NFS a removed file keeps another name while it is open.
    struct stat held, named;
    if (fstat(fd, &held) != 0 || stat(path.c_str(), &named) != 0) return FileError("lock", path);
    if (held.st_nlink > 0 && held.st_dev == named.st_dev && held.st_ino == named.st_ino) {
      return lock;
    }
    return absl::NotFoundError(absl::StrCat("cannot lock ", path, ": it was removed just now"));
  }

  std::string LockHolders(const std::string& path) override {
    struct stat file;
    if (stat(path.c_str(), &file) != 0) return "";
    std::vector<std::string> holders;
    for (const int64_t pid : HoldersOf(file)) {
      std::ifstream name(absl::StrCat("/proc/", pid, "/comm"));
      std::string text;
      std::getline(name, text);
      holders.push_back(
          absl::StrCat("process ", pid, text.empty() ? "" : absl::StrCat(" (", text, ")")));
    }
    return absl::StrJoin(holders, ", ");
  }
};

}  // namespace

absl::Status ReadableFile::Skip(uint64_t bytes) {
  constexpr size_t kPieceBytes = size_t{1} << 16;
  std::vector<char> piece(static_cast<size_t>(std::min<uint64_t>(bytes, kPieceBytes)));
  while (bytes > 0) {
    const size_t size = static_cast<size_t>(std::min<uint64_t>(bytes, piece.size()));
    const absl::StatusOr<size_t> got = Read(absl::MakeSpan(piece).first(size));
    if (!got.ok()) return got.status();
    if (*got < size) break;
    bytes -= size;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<FileLock>> FileSystem::TryLock(const std::string& path, LockKind) {
  return absl::UnimplementedError(
      absl::StrCat("cannot lock ", path, ": this file system has no locks"));
}

std::string FileSystem::LockHolders(const std::string&) { return ""; }

FileSystem* DiskFileSystem() {
  static Disk disk;
  return &disk;
}

absl::StatusOr<std::string> ReadFile(const std::string& path, FileSystem* file_system) {
  absl::StatusOr<std::unique_ptr<ReadableFile>> file = file_system->Open(path);
  if (!file.ok()) return file.status();
  std::string content((*file)->size_bytes(), '\0');
  const absl::StatusOr<size_t> got = (*file)->Read(absl::MakeSpan(content));
  if (!got.ok()) return got.status();
  content.resize(*got);
  return content;
}

}  // namespace satrap
