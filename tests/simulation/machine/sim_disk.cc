#include "tests/simulation/machine/sim_disk.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"

namespace satrap::simulation {

class SimDiskLock;

namespace {

// Blocks are small, because the simulation's files are small.
constexpr size_t kBlockBytes = 64;
constexpr int kMaxLinksInPath = 8;

absl::Status Error(absl::StatusCode code, const char* doing, const std::string& path,
                   const char* why) {
  return absl::Status(code, absl::StrCat("cannot ", doing, " ", path, ": ", why));
}

}  // namespace

struct SimDisk::Node {
  enum Kind { kFile, kLink, kFolder };
  using Entries = std::map<std::string, std::shared_ptr<Node>, std::less<>>;
  // A change of a folder's names that no SyncFolder has made durable: the name `removed` is removed
  // if it still names `node`, and then `added` becomes a name of `node`.
  struct Change {
    std::string removed;  // empty: none
    std::string added;    // likewise
    std::shared_ptr<Node> node;

    void ApplyTo(Entries* entries) const {
      const auto old = entries->find(removed);
      if (!removed.empty() && old != entries->end() && old->second == node) entries->erase(old);
      if (!added.empty()) (*entries)[added] = node;
    }
  };

  explicit Node(Kind kind) : kind(kind) {}

  const Kind kind;
  // Used by files only.
  std::vector<const SimDiskLock*> locks;  // those that exist, held or not
  std::string bytes;
  std::string durable;
  bool spoilt = false;  // a Sync has failed
  // Used by links only.
  std::string target;
  // Used by folders only.
  Entries entries;
  Entries durable_entries;
  std::vector<Change> changes;

  void Apply(Change change) {
    change.ApplyTo(&entries);
    changes.push_back(std::move(change));
  }
};

using Node = SimDisk::Node;
using NodePtr = std::shared_ptr<Node>;

class SimDiskLock final : public FileLock {
 public:
  SimDiskLock(SimDisk* disk, SimProcess* process, LockKind kind, NodePtr file)
      : disk_(disk),
        process_(process),
        kind_(kind),
        file_(std::move(file)),
        power_losses_(disk->power_losses_) {
    file_->locks.push_back(this);
  }
  ~SimDiskLock() override { std::erase(file_->locks, this); }

  bool Excludes(LockKind kind) const {
    const bool is_held =
        (process_ == nullptr || process_->alive()) && power_losses_ == disk_->power_losses_;
    return is_held && (kind_ == LockKind::kExclusive || kind == LockKind::kExclusive);
  }

 private:
  SimDisk* const disk_;
  SimProcess* const process_;
  const LockKind kind_;
  const NodePtr file_;
  const int64_t power_losses_;
};

class SimDiskWriter final : public WritableFile {
 public:
  SimDiskWriter(SimDisk* disk, SimProcess* process, std::string path, NodePtr file)
      : disk_(disk),
        process_(process),
        path_(std::move(path)),
        file_(std::move(file)),
        power_losses_(disk->power_losses_) {}

  absl::Status Append(absl::string_view bytes) override {
    RETURN_IF_ERROR(CheckOpen("write"));
    const absl::Status status = disk_->BeginWrite("write", path_);
    if (!status.ok()) bytes = bytes.substr(0, disk_->random_.Below(bytes.size() + 1));
    file_->bytes.append(bytes.data(), bytes.size());
    return status;
  }

  absl::Status Sync() override {
    RETURN_IF_ERROR(CheckOpen("sync"));
    const absl::Status status = disk_->BeginWrite("sync", path_);
    if (status.ok()) {
      if (!file_->spoilt) file_->durable = file_->bytes;
      return status;
    }
    // As on a real system, the bytes are marked as written although they are not.
    ++disk_->counts_.spoilt_files;
    file_->bytes = disk_->Torn(*file_);
    file_->durable = disk_->Torn(*file_);
    file_->spoilt = true;
    return status;
  }

 private:
  absl::Status CheckOpen(const char* doing) {
    if (process_ != nullptr) process_->Acts();
    if ((process_ == nullptr || process_->alive()) && power_losses_ == disk_->power_losses_) {
      return absl::OkStatus();
    }
    return Error(absl::StatusCode::kCancelled, doing, path_, "the process is dead");
  }

  SimDisk* const disk_;
  SimProcess* const process_;
  const std::string path_;
  const NodePtr file_;
  const int64_t power_losses_;
};

class SimDiskReader final : public ReadableFile {
 public:
  SimDiskReader(SimDisk* disk, SimProcess* process, std::string path, NodePtr file)
      : disk_(disk),
        process_(process),
        path_(std::move(path)),
        file_(std::move(file)),
        size_bytes_(file_->bytes.size()),
        power_losses_(disk->power_losses_) {}

  uint64_t size_bytes() const override { return size_bytes_; }

  absl::StatusOr<size_t> Read(absl::Span<char> bytes) override {
    if ((process_ != nullptr && !process_->alive()) || power_losses_ != disk_->power_losses_) {
      return Error(absl::StatusCode::kCancelled, "read", path_, "the process is dead");
    }
    RETURN_IF_ERROR(disk_->BeginRead(process_, "read", path_));
    const size_t from = std::min(at_, file_->bytes.size());
    const size_t got = std::min(bytes.size(), file_->bytes.size() - from);
    std::copy_n(file_->bytes.begin() + static_cast<int64_t>(from), got, bytes.begin());
    at_ = from + got;
    return got;
  }

 private:
  SimDisk* const disk_;
  SimProcess* const process_;
  const std::string path_;
  const NodePtr file_;
  const uint64_t size_bytes_;
  const int64_t power_losses_;
  size_t at_ = 0;
};

class SimDiskMount final : public FileSystem {
 public:
  SimDiskMount(SimDisk* disk, SimProcess* process) : disk_(disk), process_(process) {}

  absl::StatusOr<std::unique_ptr<ReadableFile>> Open(const std::string& path) override {
    RETURN_IF_ERROR(BeginRead("read", path));
    const NodePtr file = Find(path, /*follow=*/true);
    if (file == nullptr) return NotFound("read", path);
    if (file->kind == Node::kFolder) return WrongKind("read", path, "it is a folder");
    return std::make_unique<SimDiskReader>(disk_, process_, path, file);
  }

  absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) override {
    RETURN_IF_ERROR(BeginWrite("write", path));
    const NodePtr folder = FindFolderOf(path);
    if (folder == nullptr || folder->kind != Node::kFolder) return NotFound("write", path);
    NodePtr file = Find(path, /*follow=*/true);
    if (file == nullptr) {
      file = std::make_shared<Node>(Node::kFile);
      folder->Apply({"", NameOf(path), file});
    } else if (file->kind == Node::kFolder) {
      return WrongKind("write", path, "it is a folder");
    }
    file->bytes.clear();
    file->spoilt = false;
    return std::make_unique<SimDiskWriter>(disk_, process_, path, file);
  }

  absl::Status Rename(const std::string& from, const std::string& to) override {
    RETURN_IF_ERROR(BeginWrite("write", to));
    const NodePtr node = Find(from, /*follow=*/false);
    const NodePtr from_folder = FindFolderOf(from);
    const NodePtr to_folder = FindFolderOf(to);
    if (node == nullptr || to_folder == nullptr || to_folder->kind != Node::kFolder) {
      return NotFound("write", to);
    }
    const NodePtr replaced = Find(to, /*follow=*/false);
    if (replaced == node) return absl::OkStatus();
    if (replaced != nullptr && replaced->kind == Node::kFolder) {
      return WrongKind("write", to, "it is a folder");
    }
    if (from_folder == to_folder) {
      to_folder->Apply({NameOf(from), NameOf(to), node});
    } else {
      to_folder->Apply({"", NameOf(to), node});
      from_folder->Apply({NameOf(from), "", node});
    }
    return absl::OkStatus();
  }

  absl::Status HardLink(const std::string& from, const std::string& to) override {
    RETURN_IF_ERROR(BeginWrite("link", to));
    const NodePtr file = Find(from, /*follow=*/false);
    const NodePtr folder = FindFolderOf(to);
    if (file == nullptr || folder == nullptr || folder->kind != Node::kFolder) {
      return NotFound("link", to);
    }
    if (file->kind == Node::kFolder) return WrongKind("link", to, "the source is a folder");
    if (Find(to, /*follow=*/false) != nullptr) {
      return Error(absl::StatusCode::kAlreadyExists, "link", to, "it exists");
    }
    folder->Apply({"", NameOf(to), file});
    return absl::OkStatus();
  }

  absl::Status CreateLink(const std::string& target, const std::string& path) override {
    RETURN_IF_ERROR(BeginWrite("link", path));
    const NodePtr folder = FindFolderOf(path);
    if (folder == nullptr || folder->kind != Node::kFolder) return NotFound("link", path);
    if (Find(path, /*follow=*/false) != nullptr) return WrongKind("link", path, "it exists");
    const auto link = std::make_shared<Node>(Node::kLink);
    link->target = target;
    folder->Apply({"", NameOf(path), link});
    return absl::OkStatus();
  }

  absl::Status CreateFolders(const std::string& path) override {
    RETURN_IF_ERROR(BeginWrite("create", path));
    NodePtr folder = disk_->root_;
    std::string at;
    for (const absl::string_view name : Names(path)) {
      absl::StrAppend(&at, "/", name);
      NodePtr next = Find(at, /*follow=*/true);
      if (next == nullptr) {
        next = std::make_shared<Node>(Node::kFolder);
        folder->Apply({"", std::string(name), next});
      } else if (next->kind != Node::kFolder) {
        return WrongKind("create", path, "there is a file of that name");
      }
      folder = next;
    }
    return absl::OkStatus();
  }

  absl::Status Remove(const std::string& path) override {
    RETURN_IF_ERROR(BeginWrite("remove", path));
    const NodePtr node = Find(path, /*follow=*/false);
    if (node == nullptr) return absl::OkStatus();
    RemoveWithin(node.get());
    FindFolderOf(path)->Apply({NameOf(path), "", node});
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<std::string>> List(const std::string& path) override {
    RETURN_IF_ERROR(BeginRead("read", path));
    const NodePtr folder = Find(path, /*follow=*/true);
    if (folder == nullptr || folder->kind != Node::kFolder) return NotFound("read", path);
    std::vector<std::string> names;
    for (const auto& entry : folder->entries) names.push_back(entry.first);
    return names;
  }

  absl::Status SyncFolder(const std::string& path) override {
    RETURN_IF_ERROR(BeginWrite("sync", path));
    const NodePtr folder = Find(path, /*follow=*/true);
    if (folder == nullptr || folder->kind != Node::kFolder) return NotFound("sync", path);
    for (const Node::Change& change : folder->changes) change.ApplyTo(&folder->durable_entries);
    folder->changes.clear();
    return absl::OkStatus();
  }

  absl::StatusOr<std::unique_ptr<FileLock>> TryLock(const std::string& path,
                                                    LockKind kind) override {
    RETURN_IF_ERROR(CheckAlive("lock", path));
    const NodePtr file = Find(path, /*follow=*/true);
    if (file == nullptr) return NotFound("lock", path);
    for (const SimDiskLock* lock : file->locks) {
      if (lock->Excludes(kind)) {
        return Error(absl::StatusCode::kUnavailable, "lock", path, "another lock excludes it");
      }
    }
    return std::make_unique<SimDiskLock>(disk_, process_, kind, file);
  }

 private:
  absl::Status CheckAlive(const char* doing, const std::string& path) const {
    if (process_ == nullptr || process_->alive()) return absl::OkStatus();
    return Error(absl::StatusCode::kCancelled, doing, path, "the process is dead");
  }
  absl::Status BeginWrite(const char* doing, const std::string& path) {
    if (process_ != nullptr) process_->Acts();
    RETURN_IF_ERROR(CheckAlive(doing, path));
    return disk_->BeginWrite(doing, path);
  }
  absl::Status BeginRead(const char* doing, const std::string& path) {
    RETURN_IF_ERROR(CheckAlive(doing, path));
    return disk_->BeginRead(process_, doing, path);
  }
  // These errors are the same as those that FileError gives for a real disk
  // (common/file/file_error.h).
  static absl::Status NotFound(const char* doing, const std::string& path) {
    return Error(absl::StatusCode::kNotFound, doing, path, "No such file or directory");
  }
  static absl::Status WrongKind(const char* doing, const std::string& path, const char* why) {
    return Error(absl::StatusCode::kFailedPrecondition, doing, path, why);
  }

  using NamesInPath = std::vector<absl::string_view>;

  // The names point to `path`.
  static NamesInPath Names(absl::string_view path) {
    return absl::StrSplit(path, '/', absl::SkipEmpty());
  }
  static std::string NameOf(const std::string& path) {
    const NamesInPath names = Names(path);
    return names.empty() ? "" : std::string(names.back());
  }

  // Null if there is none. With `follow`, a link at the very end of the path is followed.
  NodePtr Find(const std::string& path, bool follow, int links = 0) const {
    return FindNames(Names(path), follow, links);
  }
  // The folder that holds the last name of the path; null if there is none.
  NodePtr FindFolderOf(const std::string& path) const {
    NamesInPath names = Names(path);
    if (!names.empty()) names.pop_back();
    return FindNames(names, /*follow=*/true, /*links=*/0);
  }
  NodePtr FindNames(const NamesInPath& names, bool follow, int links) const {
    const NodePtr* node = &disk_->root_;
    NodePtr target;  // of the last link that was followed
    for (size_t i = 0; i < names.size(); ++i) {
      if ((*node)->kind != Node::kFolder) return nullptr;
      const auto entry = (*node)->entries.find(names[i]);
      if (entry == (*node)->entries.end()) return nullptr;
      node = &entry->second;
      if ((*node)->kind != Node::kLink || (!follow && i + 1 == names.size())) continue;
      if (links == kMaxLinksInPath) return nullptr;
      std::string to = (*node)->target;
      if (!absl::StartsWith(to, "/")) {
        to = absl::StrCat("/", absl::StrJoin(absl::MakeConstSpan(names).first(i), "/"), "/", to);
      }
      target = Find(to, /*follow=*/true, links + 1);
      if (target == nullptr) return nullptr;
      node = &target;
    }
    return *node;
  }

  // Removes everything in a folder. Each name is a change of its own.
  static void RemoveWithin(Node* node) {
    while (!node->entries.empty()) {
      const auto [name, child] = *node->entries.begin();
      RemoveWithin(child.get());
      node->Apply({name, "", child});
    }
  }

  SimDisk* const disk_;
  SimProcess* const process_;
};

SimDisk::SimDisk(uint64_t seed, const DiskFaults& faults)
    : random_(seed), faults_(faults), root_(std::make_shared<Node>(Node::kFolder)) {}

SimDisk::~SimDisk() = default;

std::unique_ptr<FileSystem> SimDisk::Mount(SimProcess* process) {
  return std::make_unique<SimDiskMount>(this, process);
}

void SimDisk::FailNthWrite(int64_t nth, absl::StatusCode code, std::string within) {
  writes_to_failure_ = nth;
  fail_code_ = code;
  fail_within_ = std::move(within);
}

absl::Status SimDisk::BeginWrite(const char* doing, const std::string& path) {
  ++counts_.writes;
  absl::StatusCode code = fail_code_;
  const bool counts = writes_to_failure_ > 0 && absl::StrContains(path, fail_within_);
  if (!counts || --writes_to_failure_ > 0) {
    if (faults_.fail_write == 0 || !Draw(faults_.fail_write)) return absl::OkStatus();
    code = Draw(0.5) ? absl::StatusCode::kResourceExhausted : absl::StatusCode::kDataLoss;
  }
  ++counts_.failed;
  return Error(code, doing, path,
               code == absl::StatusCode::kResourceExhausted ? "No space left on device"
                                                            : "Input/output error");
}

absl::Status SimDisk::BeginRead(const SimProcess* process, const char* doing,
                                const std::string& path) {
  ++counts_.reads;
  const bool fails_now = process != nullptr && reads_to_failure_ > 0 && --reads_to_failure_ == 0;
  if (!fails_now && (faults_.fail_read == 0 || !Draw(faults_.fail_read))) return absl::OkStatus();
  ++counts_.failed;
  ++counts_.failed_reads;
  return Error(absl::StatusCode::kDataLoss, doing, path, "Input/output error");
}

std::string SimDisk::Torn(const Node& file) {
  const std::string& bytes = file.bytes;
  if (bytes == file.durable) return bytes;
  const size_t synced = absl::StartsWith(bytes, file.durable) ? file.durable.size() : 0;
  switch (random_.Below(5)) {
    case 0:
      return file.durable;
    case 1:
      return bytes;
    default:
      break;
  }
  const size_t written = synced + random_.Below(bytes.size() - synced + 1);
  std::string torn = bytes.substr(0, written);
  if (Draw(0.5)) torn.resize(bytes.size(), '\0');
  // Blocks reach the disk in any order.
  if (Draw(0.5)) {
    for (size_t at = synced; at < torn.size(); at += kBlockBytes) {
      if (Draw(0.5)) continue;
      const size_t end = std::min(at + kBlockBytes, torn.size());
      std::fill(torn.begin() + static_cast<int64_t>(at), torn.begin() + static_cast<int64_t>(end),
                '\0');
    }
  }
  return torn;
}

void SimDisk::LosePower() {
  ++power_losses_;
  // Now and then all changes of folders that were not synced are lost, and now and then none of
  // them. What a file loses is drawn separately (Torn).
  const double chances[] = {0, 0.1, 0.5, 0.9, 1};
  LosePowerBelow(root_.get(), chances[random_.Below(5)]);
}

void SimDisk::LosePowerBelow(Node* folder, double survives) {
  for (const Node::Change& change : folder->changes) {
    if (survives == 1 || Draw(survives)) {
      change.ApplyTo(&folder->durable_entries);
    } else {
      ++counts_.lost_changes;
    }
  }
  folder->changes.clear();
  folder->entries = folder->durable_entries;
  for (const auto& [name, node] : folder->entries) {
    if (node->kind == Node::kFolder) LosePowerBelow(node.get(), survives);
    if (node->kind != Node::kFile) continue;
    // A file with two names is visited twice. The second visit finds nothing left to lose.
    std::string left = node->spoilt ? node->durable : Torn(*node);
    if (left != node->bytes) ++counts_.torn_files;
    node->bytes = node->durable = std::move(left);
    node->spoilt = false;
  }
}

}  // namespace satrap::simulation
