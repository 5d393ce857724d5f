#include "common/file/file_history.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/file/file_error.h"
#include "common/file/file_system.h"

namespace satrap {
namespace {

std::string OlderName(const std::string& path, int age) { return absl::StrCat(path, ".", age); }

// Renames PATH.1 to PATH.2, PATH.2 to PATH.3 and so on, so that PATH.1 is free.
absl::Status MoveOlder(const std::string& path, int older) {
  for (int age = older - 1; age >= 1; --age) {
    const std::string from = OlderName(path, age);
    if (rename(from.c_str(), OlderName(path, age + 1).c_str()) != 0 && errno != ENOENT) {
      return FileError("rename", from);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status MoveToHistory(const std::string& path, int older) {
  // Without this check the older files would be renamed even if there is no file to move.
  if (access(path.c_str(), F_OK) != 0) return FileError("rename", path);
  RETURN_IF_ERROR(MoveOlder(path, older));
  if (rename(path.c_str(), OlderName(path, 1).c_str()) != 0) return FileError("rename", path);
  return absl::OkStatus();
}

absl::Status CutForeignFile(const std::string& path, const FileLimits& limits) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0) return FileError("read", path);
  if (!S_ISREG(status.st_mode) || status.st_size <= limits.bytes) return absl::OkStatus();
  // Without the lock, two processes that cut at the same time would write into the same copy, and
  // rename the older files twice.
  const auto lock = DiskFileSystem()->TryLock(path, LockKind::kExclusive);
  if (absl::IsUnavailable(lock.status())) return absl::OkStatus();  // another one cuts it now
  RETURN_IF_ERROR(lock.status());
  if (stat(path.c_str(), &status) != 0) return FileError("read", path);
  if (status.st_size <= limits.bytes) return absl::OkStatus();  // another one has cut it
  // Copies under another name first, so that the history stays as it is if the disk is full.
  const std::string copy = path + ".partial";
  std::error_code error;
  std::filesystem::copy_file(path, copy, std::filesystem::copy_options::overwrite_existing, error);
  if (error) {
    unlink(copy.c_str());
    return FileError("copy", path, error.value());
  }
  RETURN_IF_ERROR(MoveOlder(path, limits.older));
  if (rename(copy.c_str(), OlderName(path, 1).c_str()) != 0) return FileError("rename", copy);
  if (truncate(path.c_str(), 0) != 0) return FileError("empty", path);
  return absl::OkStatus();
}

}  // namespace satrap
