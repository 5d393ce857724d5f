#include "common/checkpoint/file_system.h"

#include <fcntl.h>
#include <unistd.h>

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

  absl::Status Rename(const std::string& from, const std::string& to) override {
    return std::rename(from.c_str(), to.c_str()) == 0 ? absl::OkStatus() : FileError("write", to);
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

}  // namespace satrap
