// A FileSystem in memory for tests. A test sees the order of the operations. Its hook, which runs
// before each of them, can make it fail, or do what another process might do at that moment.
//
// It keeps everything, synced or not, so it does not model power failures; the simulation's disk
// does (tests/simulation). Not thread-safe.

#ifndef SATRAP_COMMON_FILE_TESTING_MEMORY_FILE_SYSTEM_H_
#define SATRAP_COMMON_FILE_TESTING_MEMORY_FILE_SYSTEM_H_

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/file/file_system.h"

namespace satrap {

class MemoryFileSystem final : public FileSystem {
 public:
  MemoryFileSystem() = default;

  // Called before each operation that changes something, with its text: "create PATH", "append
  // PATH", "sync PATH", "rename FROM TO", "hard_link FROM TO", "link TARGET PATH", "folders PATH",
  // "remove PATH", "sync_folder PATH". If it returns an error, the operation returns it and changes
  // nothing.
  void SetHook(std::function<absl::Status(const std::string& operation)> hook) {
    hook_ = std::move(hook);
  }
  // Called with the path before each Open. If it returns an error, Open returns it.
  void SetOpenHook(std::function<absl::Status(const std::string& path)> hook) {
    open_hook_ = std::move(hook);
  }
  // The texts of all operations that change something, since the start or the last call of this
  // function.
  std::vector<std::string> TakeOperations();

  // Sets a file's content, making the file and its folders if needed. Does not count as an
  // operation.
  void Put(const std::string& path, const std::string& content);
  bool Exists(const std::string& path) const;
  // REQUIRES: the file or link exists
  std::string ContentOf(const std::string& path) const { return *files_.at(path); }
  std::string TargetOf(const std::string& path) const { return links_.at(path); }

  absl::StatusOr<std::unique_ptr<ReadableFile>> Open(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) override;
  absl::Status Rename(const std::string& from, const std::string& to) override;
  absl::Status HardLink(const std::string& from, const std::string& to) override;
  absl::Status CreateLink(const std::string& target, const std::string& path) override;
  absl::Status CreateFolders(const std::string& path) override;
  absl::Status Remove(const std::string& path) override;
  absl::StatusOr<std::vector<std::string>> List(const std::string& folder) override;
  absl::Status SyncFolder(const std::string& folder) override;
  absl::StatusOr<std::unique_ptr<FileLock>> TryLock(const std::string& path,
                                                    LockKind kind) override;
  std::string LockHolders(const std::string& path) override;

 private:
  class File;
  class Lock;
  absl::Status Begin(const std::string& operation);
  void AddFolders(std::string path);

  std::function<absl::Status(const std::string&)> hook_;
  std::function<absl::Status(const std::string&)> open_hook_;
  std::vector<std::string> operations_;
  std::map<std::string, std::shared_ptr<std::string>> files_;  // hard links share a content
  std::map<std::string, std::string> links_;
  std::set<std::string> folders_;
  std::vector<std::weak_ptr<const Lock>> locks_;  // in the order in which they were taken
};

}  // namespace satrap

#endif  // SATRAP_COMMON_FILE_TESTING_MEMORY_FILE_SYSTEM_H_
