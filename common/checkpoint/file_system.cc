#include "common/checkpoint/file_system.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "common/file/file_error.h"

namespace satrap {
namespace {

namespace fs = std::filesystem;

class DiskFile final : public WritableFile {
 public:
  DiskFile(std::string path, FILE* file) : path_(std::move(path)), file_(file) {}
  ~DiskFile() override { std::fclose(file_); }

  absl::Status Append(absl::string_view bytes) override {
    if (std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size()) {
      return FileError("write", path_);
    }
    return absl::OkStatus();
  }

  absl::Status Sync() override {
    if (std::fflush(file_) != 0 || fsync(fileno(file_)) != 0) return FileError("write", path_);
    return absl::OkStatus();
  }

 private:
  const std::string path_;
  FILE* const file_;
};

// Reads past the cache of stdio: callers read in large pieces.
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

 private:
  const std::string path_;
  const int fd_;
  const uint64_t size_bytes_;
};

absl::Status StatusOf(absl::string_view doing, const std::string& path,
                      const std::error_code& error) {
  return error ? FileError(doing, path, error.value()) : absl::OkStatus();
}

class Disk final : public FileSystem {
 public:
  absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) override {
    FILE* file = std::fopen(path.c_str(), "wbe");
    if (file == nullptr) return FileError("write", path);
    return std::make_unique<DiskFile>(path, file);
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
    if (link(from.c_str(), to.c_str()) == 0) return absl::OkStatus();
    const int error = errno;
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
};

}  // namespace

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
