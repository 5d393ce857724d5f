#include "common/checkpoint/durable_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <utility>

#include "common/crc32c.h"
#include "common/file_error.h"

namespace satrap {
namespace {

// Makes a rename in the folder durable: fsync of the file itself covers its bytes, not its name.
absl::Status SyncFolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return FileError("open", folder);
  const int result = fsync(fd);
  close(fd);
  return result == 0 ? absl::OkStatus() : FileError("sync", folder);
}

}  // namespace

absl::StatusOr<std::unique_ptr<DurableFile>> DurableFile::Create(const std::string& path) {
  const std::string partial = path + ".partial";
  FILE* file = std::fopen(partial.c_str(), "wbe");
  if (file == nullptr) return FileError("write", path);
  return std::unique_ptr<DurableFile>(new DurableFile(path, file));
}

DurableFile::DurableFile(std::string path, FILE* file)
    : path_(std::move(path)), partial_path_(path_ + ".partial"), file_(file) {}

DurableFile::~DurableFile() {
  if (file_ == nullptr) return;  // committed
  std::fclose(file_);
  unlink(partial_path_.c_str());
}

absl::Status DurableFile::Append(absl::string_view bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size()) {
    return FileError("write", path_);
  }
  size_bytes_ += bytes.size();
  crc32c_ = ExtendCrc32c(crc32c_, bytes);
  return absl::OkStatus();
}

absl::Status DurableFile::Commit() {
  // The bytes must be on disk before the name points at them: a crash in between must leave the old
  // file or the new one, not an empty one.
  if (std::fflush(file_) != 0 || fsync(fileno(file_)) != 0 ||
      std::rename(partial_path_.c_str(), path_.c_str()) != 0) {
    return FileError("write", path_);
  }
  std::fclose(std::exchange(file_, nullptr));
  return SyncFolderOf(path_);
}

}  // namespace satrap
