// A disk and a file that forward every operation, for tests that change one or two operations.

#ifndef SATRAP_COMMON_FILE_TESTING_FORWARDING_FILE_SYSTEM_H_
#define SATRAP_COMMON_FILE_TESTING_FORWARDING_FILE_SYSTEM_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/file/file_system.h"

namespace satrap {

class ForwardingFile : public WritableFile {
 public:
  explicit ForwardingFile(std::unique_ptr<WritableFile> file) : file_(std::move(file)) {}
  absl::Status Append(absl::string_view bytes) override { return file_->Append(bytes); }
  absl::Status Sync() override { return file_->Sync(); }

 private:
  const std::unique_ptr<WritableFile> file_;
};

// As thread-safe as the disk to which it forwards.
class ForwardingFileSystem : public FileSystem {
 public:
  // Owns `disk`.
  explicit ForwardingFileSystem(std::unique_ptr<FileSystem> disk)
      : owned_(std::move(disk)), disk_(owned_.get()) {}
  // Does not own `disk`.
  explicit ForwardingFileSystem(FileSystem* disk = DiskFileSystem()) : disk_(disk) {}

  absl::StatusOr<std::unique_ptr<ReadableFile>> Open(const std::string& path) override {
    return Next()->Open(path);
  }
  absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) override {
    return Next()->Create(path);
  }
  absl::Status Rename(const std::string& from, const std::string& to) override {
    return Next()->Rename(from, to);
  }
  absl::Status HardLink(const std::string& from, const std::string& to) override {
    return Next()->HardLink(from, to);
  }
  absl::Status CreateLink(const std::string& target, const std::string& path) override {
    return Next()->CreateLink(target, path);
  }
  absl::Status CreateFolders(const std::string& path) override {
    return Next()->CreateFolders(path);
  }
  absl::Status Remove(const std::string& path) override { return Next()->Remove(path); }
  absl::StatusOr<std::vector<std::string>> List(const std::string& folder) override {
    return Next()->List(folder);
  }
  absl::Status SyncFolder(const std::string& folder) override { return Next()->SyncFolder(folder); }
  absl::StatusOr<std::unique_ptr<FileLock>> TryLock(const std::string& path,
                                                    LockKind kind) override {
    return disk_->TryLock(path, kind);
  }
  std::string LockHolders(const std::string& path) override { return disk_->LockHolders(path); }

 protected:
  FileSystem* disk() const { return disk_; }
  // Called before each operation except TryLock and LockHolders. The operation goes to the disk
  // that this returns.
  virtual FileSystem* Next() { return disk_; }

 private:
  const std::unique_ptr<FileSystem> owned_;
  FileSystem* const disk_;
};

}  // namespace satrap

#endif  // SATRAP_COMMON_FILE_TESTING_FORWARDING_FILE_SYSTEM_H_
