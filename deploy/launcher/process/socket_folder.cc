#include "deploy/launcher/process/socket_folder.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/config/text_format.h"
#include "common/file/file_error.h"

namespace satrap {
namespace {

namespace fs = std::filesystem;

constexpr char kPrefix[] = "satrap-";
constexpr char kSixLetters[] = "XXXXXX";
constexpr char kOwner[] = "/owner";
// A socket's path has at most 107 bytes. The longest one here is
// PARENT/satrap-XXXXXX/embedding_worker_1023, with some bytes to spare.
constexpr size_t kLongestParent = 64;

// Whether `path` is a folder that this program made, judged by its name, type, mode and user. If it
// is, no other user can have written to it.
bool IsSocketFolder(const std::string& path) {
  const std::string name = fs::path(path).filename().string();
  struct stat info;
  return absl::StartsWith(name, kPrefix) &&
         name.size() == std::string(kPrefix).size() + std::string(kSixLetters).size() &&
         lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode) &&
         (info.st_mode & 07777) == 0700 && info.st_uid == geteuid();
}

// Whether `path` still names the file that is open as `fd`.
bool IsStill(int fd, const std::string& path) {
  struct stat held;
  struct stat named;
  return fstat(fd, &held) == 0 && lstat(path.c_str(), &named) == 0 && held.st_dev == named.st_dev &&
         held.st_ino == named.st_ino;
}

// Removes the owner's file last: if this process is killed before that, the next launcher finds the
// file and removes the rest.
void RemoveWithLink(const std::string& folder, const std::string& link) {
  std::error_code error;
  if (fs::read_symlink(link, error) == folder) fs::remove(link, error);
  std::vector<fs::path> content;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (it->path() != folder + kOwner) content.push_back(it->path());
  }
  for (const fs::path& path : content) fs::remove_all(path, error);
  fs::remove_all(folder, error);
}

// Removes the folder if its owner has ended. If the owner's file is missing, the folder is just
// being made, or another program made it.
void RemoveIfLeft(const std::string& folder) {
  const std::string owner = folder + kOwner;
  const int fd = open(owner.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return;
  // Between open and flock another launcher may have removed the folder, and a third one may have
  // made a new folder of the same name. Then this lock is on the removed file.
  if (flock(fd, LOCK_EX | LOCK_NB) == 0 && IsStill(fd, owner)) {
    RemoveWithLink(folder, ReadWholeFile(owner).value_or(""));
  }
  close(fd);
}

void RemoveLeftFolders(const std::string& parent) {
  std::error_code error;
  std::vector<std::string> found;
  for (fs::directory_iterator it(parent, error), end; !error && it != end; it.increment(error)) {
    if (IsSocketFolder(it->path().string())) found.push_back(it->path().string());
  }
  for (const std::string& folder : found) RemoveIfLeft(folder);
}

}  // namespace

absl::Status ReplaceLink(const std::string& target, const std::string& link) {
  const std::string fresh = absl::StrCat(link, ".", getpid());
  unlink(fresh.c_str());
  if (symlink(target.c_str(), fresh.c_str()) == 0 && rename(fresh.c_str(), link.c_str()) == 0) {
    return absl::OkStatus();
  }
  const int error = errno;
  unlink(fresh.c_str());
  return FileError("make link", link, error);
}

absl::StatusOr<std::unique_ptr<SocketFolder>> SocketFolder::Make(const std::string& parent,
                                                                 const std::string& link) {
  RemoveLeftFolders(parent);
  std::string path = absl::StrCat(parent, "/", kPrefix, kSixLetters);
  if (mkdtemp(path.data()) == nullptr) return FileError("make folder", path);
  // From here on the destructor removes the folder, even if Claim fails.
  std::unique_ptr<SocketFolder> folder(new SocketFolder(path, link));
  RETURN_IF_ERROR(folder->Claim());
  RETURN_IF_ERROR(ReplaceLink(path, link));
  return folder;
}

absl::StatusOr<std::unique_ptr<SocketFolder>> SocketFolder::MakeInTemporaryFolder(
    const std::string& link) {
  std::error_code error;
  const fs::path named = fs::temp_directory_path(error);
  if (error) return FileError("use the temporary folder that", "TMPDIR names", error.value());
  const std::string parent = fs::absolute(named).string();
  if (parent.size() > kLongestParent) {
    return absl::InvalidArgumentError(
        absl::StrCat("the temporary folder ", parent, " (TMPDIR) has a path of ", parent.size(),
                     " bytes, and paths of sockets in it would be too long: name one of at most ",
                     kLongestParent, " bytes"));
  }
  auto folder = Make(parent, link);
  if (folder.ok()) return folder;
  return absl::Status(folder.status().code(),
                      absl::StrCat(folder.status().message(),
                                   "; TMPDIR names another folder for the run's sockets"));
}

SocketFolder::SocketFolder(std::string path, std::string link)
    : path_(std::move(path)), link_(std::move(link)) {}

// Locks the owner's file before it gets its name, so that no process ever sees it unlocked.
absl::Status SocketFolder::Claim() {
  const std::string owner = path_ + kOwner;
  const std::string fresh = owner + ".new";
  owner_fd_ = open(fresh.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (owner_fd_ < 0) return FileError("write", fresh);
  const ssize_t written = write(owner_fd_, link_.data(), link_.size());
  // A short write means that the disk is full, but it does not set errno; the next write would.
  if (written >= 0 && written != static_cast<ssize_t>(link_.size())) {
    return FileError("write", owner, ENOSPC);
  }
  if (written < 0 || flock(owner_fd_, LOCK_EX | LOCK_NB) != 0 ||
      rename(fresh.c_str(), owner.c_str()) != 0) {
    return FileError("write", owner);
  }
  return absl::OkStatus();
}

SocketFolder::~SocketFolder() {
  RemoveWithLink(path_, link_);
  if (owner_fd_ >= 0) close(owner_fd_);
}

}  // namespace satrap
