// A disk for tests on which one operation fails.

#ifndef SATRAP_NN_WORKER_CHECKPOINT_FAILING_FILE_SYSTEM_H_
#define SATRAP_NN_WORKER_CHECKPOINT_FAILING_FILE_SYSTEM_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/file/file_system.h"

namespace satrap {

// The machine's disk, except that the `failing`-th operation that changes something (from 1) fails.
// Remove is not counted.
class FailingFileSystem final : public FileSystem {
 public:
  absl::StatusOr<std::unique_ptr<ReadableFile>> Open(const std::string& path) override {
    return DiskFileSystem()->Open(path);
  }
  absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) override {
    if (absl::Status status = Do(); !status.ok()) return status;
    auto file = DiskFileSystem()->Create(path);
    if (!file.ok()) return file.status();
    return std::make_unique<File>(this, *std::move(file));
  }
  absl::Status Rename(const std::string& from, const std::string& to) override {
    const absl::Status status = Do();
    return status.ok() ? DiskFileSystem()->Rename(from, to) : status;
  }
  absl::Status HardLink(const std::string& from, const std::string& to) override {
    const absl::Status status = Do();
    return status.ok() ? DiskFileSystem()->HardLink(from, to) : status;
  }
  absl::Status CreateLink(const std::string& target, const std::string& path) override {
    const absl::Status status = Do();
    return status.ok() ? DiskFileSystem()->CreateLink(target, path) : status;
  }
  absl::Status CreateFolders(const std::string& path) override {
    const absl::Status status = Do();
    return status.ok() ? DiskFileSystem()->CreateFolders(path) : status;
  }
  absl::Status Remove(const std::string& path) override { return DiskFileSystem()->Remove(path); }
  absl::StatusOr<std::vector<std::string>> List(const std::string& folder) override {
    return DiskFileSystem()->List(folder);
  }
  absl::Status SyncFolder(const std::string& folder) override {
    const absl::Status status = Do();
    if (!status.ok()) return status;
    synced_folders.push_back(folder);
    return DiskFileSystem()->SyncFolder(folder);
  }

  int done = 0;
  int failing = 0;
  std::vector<std::string> synced_folders;

 private:
  class File final : public WritableFile {
   public:
    File(FailingFileSystem* owner, std::unique_ptr<WritableFile> file)
        : owner_(owner), file_(std::move(file)) {}
    absl::Status Append(absl::string_view bytes) override {
      const absl::Status status = owner_->Do();
      return status.ok() ? file_->Append(bytes) : status;
    }
    absl::Status Sync() override {
      const absl::Status status = owner_->Do();
      return status.ok() ? file_->Sync() : status;
    }

   private:
    FailingFileSystem* const owner_;
    const std::unique_ptr<WritableFile> file_;
  };

  absl::Status Do() {
    return ++done == failing ? absl::ResourceExhaustedError("no space left") : absl::OkStatus();
  }
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_CHECKPOINT_FAILING_FILE_SYSTEM_H_
