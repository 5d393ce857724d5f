#include "common/file/testing/memory_file_system.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace satrap {
namespace {

class MemoryReader final : public ReadableFile {
 public:
  explicit MemoryReader(std::shared_ptr<const std::string> content)
      : content_(std::move(content)) {}
  uint64_t size_bytes() const override { return content_->size(); }
  absl::StatusOr<size_t> Read(absl::Span<char> bytes) override {
    const size_t count = std::min(bytes.size(), content_->size() - offset_);
    std::memcpy(bytes.data(), content_->data() + offset_, count);
    offset_ += count;
    return count;
  }

 private:
  // The content is shared with the file, not copied. So, as on a disk, Read also returns what is
  // appended after Open, and a file that is removed or replaced can still be read to its end.
  const std::shared_ptr<const std::string> content_;
  size_t offset_ = 0;
};

absl::Status NoSuchFile(const std::string& path) {
  return absl::NotFoundError(absl::StrCat("cannot read ", path, ": no such file"));
}

std::string FolderOf(const std::string& path) { return path.substr(0, path.rfind('/')); }

bool IsAtOrBelow(const std::string& path, const std::string& folder) {
  return path == folder || absl::StartsWith(path, folder + "/");
}

// What `path` becomes when the folder `from` is renamed to `to`.
std::string MovedPath(const std::string& path, const std::string& from, const std::string& to) {
  return IsAtOrBelow(path, from) ? to + path.substr(from.size()) : path;
}

template <typename ByPath>
void MoveBelow(const std::string& from, const std::string& to, ByPath* by_path) {
  ByPath moved;
  for (auto& [path, content] : *by_path) moved[MovedPath(path, from, to)] = std::move(content);
  *by_path = std::move(moved);
}

}  // namespace

class MemoryFileSystem::File final : public WritableFile {
 public:
  File(MemoryFileSystem* owner, std::string path, std::shared_ptr<std::string> content)
      : owner_(owner), path_(std::move(path)), content_(std::move(content)) {}
  absl::Status Append(absl::string_view bytes) override {
    RETURN_IF_ERROR(owner_->Begin("append " + path_));
    content_->append(bytes.data(), bytes.size());
    return absl::OkStatus();
  }
  absl::Status Sync() override { return owner_->Begin("sync " + path_); }

 private:
  MemoryFileSystem* const owner_;
  const std::string path_;
  const std::shared_ptr<std::string> content_;
};

class MemoryFileSystem::Lock {
 public:
  Lock(std::shared_ptr<const std::string> content, LockKind kind)
      : content(std::move(content)), kind(kind) {}
  const std::shared_ptr<const std::string> content;  // identifies the file
  const LockKind kind;
};

absl::Status MemoryFileSystem::Begin(const std::string& operation) {
  operations_.push_back(operation);
  return hook_ ? hook_(operation) : absl::OkStatus();
}

std::vector<std::string> MemoryFileSystem::TakeOperations() {
  std::vector<std::string> taken;
  taken.swap(operations_);
  return taken;
}

void MemoryFileSystem::AddFolders(std::string path) {
  while (!path.empty() && folders_.insert(path).second) path = FolderOf(path);
}

void MemoryFileSystem::Put(const std::string& path, const std::string& content) {
  AddFolders(FolderOf(path));
  files_[path] = std::make_shared<std::string>(content);
}

bool MemoryFileSystem::Exists(const std::string& path) const {
  return files_.count(path) + links_.count(path) + folders_.count(path) > 0;
}

absl::StatusOr<std::unique_ptr<ReadableFile>> MemoryFileSystem::Open(const std::string& path) {
  if (open_hook_) RETURN_IF_ERROR(open_hook_(path));
  const auto file = files_.find(path);
  if (file == files_.end()) return NoSuchFile(path);
  return std::make_unique<MemoryReader>(file->second);
}

absl::StatusOr<std::unique_ptr<WritableFile>> MemoryFileSystem::Create(const std::string& path) {
  RETURN_IF_ERROR(Begin("create " + path));
  if (folders_.count(FolderOf(path)) == 0) return NoSuchFile(path);
  auto content = std::make_shared<std::string>();
  files_[path] = content;
  return std::make_unique<File>(this, path, std::move(content));
}

absl::Status MemoryFileSystem::Rename(const std::string& from, const std::string& to) {
  RETURN_IF_ERROR(Begin(absl::StrCat("rename ", from, " ", to)));
  if (const auto file = files_.extract(from)) {
    // A path is in only one of the two maps, so what was at `to` is removed from the other one.
    links_.erase(to);
    files_[to] = file.mapped();
    return absl::OkStatus();
  }
  if (const auto link = links_.extract(from)) {
    files_.erase(to);
    links_[to] = link.mapped();
    return absl::OkStatus();
  }
  if (folders_.count(from) == 0) return NoSuchFile(from);
  MoveBelow(from, to, &files_);
  MoveBelow(from, to, &links_);
  std::set<std::string> folders;
  for (const std::string& path : folders_) folders.insert(MovedPath(path, from, to));
  folders_ = std::move(folders);
  return absl::OkStatus();
}

absl::Status MemoryFileSystem::HardLink(const std::string& from, const std::string& to) {
  RETURN_IF_ERROR(Begin(absl::StrCat("hard_link ", from, " ", to)));
  if (Exists(to)) return absl::AlreadyExistsError(absl::StrCat(to, " exists"));
  const auto file = files_.find(from);
  if (file == files_.end()) return NoSuchFile(from);
  files_[to] = file->second;
  return absl::OkStatus();
}

absl::Status MemoryFileSystem::CreateLink(const std::string& target, const std::string& path) {
  RETURN_IF_ERROR(Begin(absl::StrCat("link ", target, " ", path)));
  if (Exists(path)) return absl::FailedPreconditionError(absl::StrCat(path, " exists"));
  links_[path] = target;
  return absl::OkStatus();
}

absl::Status MemoryFileSystem::CreateFolders(const std::string& path) {
  RETURN_IF_ERROR(Begin("folders " + path));
  AddFolders(path);
  return absl::OkStatus();
}

absl::Status MemoryFileSystem::Remove(const std::string& path) {
  RETURN_IF_ERROR(Begin("remove " + path));
  const auto below = [&path](const std::string& name) { return IsAtOrBelow(name, path); };
  std::erase_if(files_, [&below](const auto& file) { return below(file.first); });
  std::erase_if(links_, [&below](const auto& link) { return below(link.first); });
  std::erase_if(folders_, below);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> MemoryFileSystem::List(const std::string& folder) {
  if (folders_.count(folder) == 0) return NoSuchFile(folder);
  std::vector<std::string> names;
  const auto add = [&](const std::string& path) {
    if (FolderOf(path) == folder) names.push_back(path.substr(folder.size() + 1));
  };
  for (const auto& [path, content] : files_) add(path);
  for (const auto& [path, target] : links_) add(path);
  for (const std::string& path : folders_) add(path);
  return names;
}

absl::Status MemoryFileSystem::SyncFolder(const std::string& folder) {
  return Begin("sync_folder " + folder);
}

absl::StatusOr<std::unique_ptr<FileLock>> MemoryFileSystem::TryLock(const std::string& path,
                                                                    LockKind kind) {
  const auto file = files_.find(path);
  if (file == files_.end()) return NoSuchFile(path);
  // Compares contents, not paths, because a lock stays with its file if the file is renamed or
  // linked.
  for (const std::weak_ptr<const Lock>& held : locks_) {
    const std::shared_ptr<const Lock> other = held.lock();
    if (other == nullptr || other->content != file->second) continue;
    if (kind == LockKind::kShared && other->kind == LockKind::kShared) continue;
    return absl::UnavailableError(absl::StrCat(path, " is locked"));
  }
  struct Holder final : FileLock {
    explicit Holder(std::shared_ptr<const Lock> lock) : lock(std::move(lock)) {}
    const std::shared_ptr<const Lock> lock;
  };
  auto lock = std::make_shared<const Lock>(file->second, kind);
  locks_.push_back(lock);
  return std::make_unique<Holder>(std::move(lock));
}

std::string MemoryFileSystem::LockHolders(const std::string& path) {
  const auto file = files_.find(path);
  const auto holds = [&](const std::weak_ptr<const Lock>& held) {
    const std::shared_ptr<const Lock> lock = held.lock();
    return lock != nullptr && file != files_.end() && lock->content == file->second;
  };
  return absl::StrCat(std::count_if(locks_.begin(), locks_.end(), holds), " locks");
}

}  // namespace satrap
