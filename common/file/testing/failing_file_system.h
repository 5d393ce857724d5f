// A disk for tests, on which a chosen operation fails.

#ifndef SATRAP_COMMON_FILE_TESTING_FAILING_FILE_SYSTEM_H_
#define SATRAP_COMMON_FILE_TESTING_FAILING_FILE_SYSTEM_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/file/testing/forwarding_file_system.h"

namespace satrap {

// The machine's disk, except that the `failing`-th operation that changes something (counted from
// 1) fails as if the disk were full. Remove is not counted.
class FailingFileSystem final : public ForwardingFileSystem {
 public:
  // With `syncs` false nothing is synced, because syncing would take most of a long test's time.
  explicit FailingFileSystem(bool syncs = true) : syncs_(syncs) {}

  absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) override {
    if (absl::Status status = Do(path); !status.ok()) return status;
    auto file = disk()->Create(path);
    if (!file.ok()) return file.status();
    return std::make_unique<File>(this, path, *std::move(file));
  }
  absl::Status Rename(const std::string& from, const std::string& to) override {
    const absl::Status status = Do(to);
    return status.ok() ? disk()->Rename(from, to) : status;
  }
  absl::Status HardLink(const std::string& from, const std::string& to) override {
    const absl::Status status = Do(to);
    return status.ok() ? disk()->HardLink(from, to) : status;
  }
  absl::Status CreateLink(const std::string& target, const std::string& path) override {
    const absl::Status status = Do(path);
    return status.ok() ? disk()->CreateLink(target, path) : status;
  }
  absl::Status CreateFolders(const std::string& path) override {
    const absl::Status status = Do(path);
    return status.ok() ? disk()->CreateFolders(path) : status;
  }
  absl::Status SyncFolder(const std::string& folder) override {
    const absl::Status status = Do(folder);
    if (!status.ok() || !syncs_) return status;
    synced_folders.push_back(folder);
    return disk()->SyncFolder(folder);
  }

  int done = 0;
  int failing = 0;  // 0: none
  std::vector<std::string> synced_folders;

 private:
  class File final : public ForwardingFile {
   public:
    File(FailingFileSystem* owner, std::string path, std::unique_ptr<WritableFile> file)
        : ForwardingFile(std::move(file)), owner_(owner), path_(std::move(path)) {}
    absl::Status Append(absl::string_view bytes) override {
      const absl::Status status = owner_->Do(path_);
      return status.ok() ? ForwardingFile::Append(bytes) : status;
    }
    absl::Status Sync() override {
      const absl::Status status = owner_->Do(path_);
      return status.ok() && owner_->syncs_ ? ForwardingFile::Sync() : status;
    }

   private:
    FailingFileSystem* const owner_;
    const std::string path_;
  };

  absl::Status Do(const std::string& path) {
    if (++done != failing) return absl::OkStatus();
    return absl::ResourceExhaustedError(absl::StrCat(path, ": no space left"));
  }

  const bool syncs_;
};

}  // namespace satrap

#endif  // SATRAP_COMMON_FILE_TESTING_FAILING_FILE_SYSTEM_H_
