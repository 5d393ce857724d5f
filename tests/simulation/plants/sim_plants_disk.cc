#include "tests/simulation/plants/sim_plants_disk.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checked_text.h"
#include "common/config/text_format.h"
#include "proto/run_log.pb.h"

namespace satrap::simulation {
namespace {

constexpr absl::string_view kManifestName = "/manifest";
// What the text of an entry contains, by the kind of the entry.
constexpr absl::string_view kCompacted = "compacted {";
constexpr absl::string_view kDropped = "dropped {";

bool SkipsSyncs(Plant plant) {
  return plant == Plant::kFilesNotSynced || plant == Plant::kEntriesNotSynced;
}

class PlantedFile final : public WritableFile {
 public:
  explicit PlantedFile(std::unique_ptr<WritableFile> file) : file_(std::move(file)) {}
  absl::Status Append(absl::string_view bytes) override { return file_->Append(bytes); }
  absl::Status Sync() override { return absl::OkStatus(); }

 private:
  const std::unique_ptr<WritableFile> file_;
};

bool IsInLog(const std::string& path) { return absl::StrContains(path, "/log/"); }

// The numbers of entries are names of digits only.
bool IsAbove(const std::string& name, const std::string& entry) {
  return name.size() == entry.size() && name > entry;
}

// Takes out of a COMPACTED entry what the plant forgets.
std::string Forget(Plant plant, absl::string_view text) {
  RunLogEntry entry;
  const absl::string_view message = text.substr(0, text.rfind("# crc32c"));
  CHECK_OK(ParseText(message, "an entry", &entry));
  auto* entries = entry.mutable_compacted()->mutable_entries();
  for (int i = entries->size() - 1; i >= 0; --i) {
    if (plant == Plant::kJobForgotten) {
      if (entries->Get(i).has_generation()) entries->Mutable(i)->mutable_generation()->clear_job();
    } else if (entries->Get(i).has_cut()) {
      entries->DeleteSubrange(i, 1);
      break;
    }
  }
  return CheckedText(entry);
}

// An entry's draft.
class ForgetfulFile final : public WritableFile {
 public:
  ForgetfulFile(Plant plant, std::unique_ptr<WritableFile> file)
      : plant_(plant), file_(std::move(file)) {}
  absl::Status Append(absl::string_view bytes) override {
    if (!absl::StrContains(bytes, kCompacted)) return file_->Append(bytes);
    return file_->Append(Forget(plant_, bytes));
  }
  absl::Status Sync() override { return file_->Sync(); }

 private:
  const Plant plant_;
  const std::unique_ptr<WritableFile> file_;
};

class PlantedDisk final : public FileSystem {
 public:
  PlantedDisk(Plant plant, std::unique_ptr<FileSystem> disk, const ForgetfulLedger* ledger)
      : plant_(plant), disk_(std::move(disk)), ledger_(ledger) {}

  absl::StatusOr<std::unique_ptr<ReadableFile>> Open(const std::string& path) override {
    auto file = disk_->Open(path);
    if (IsInLog(path) && absl::IsNotFound(file.status())) is_gone_ = true;
    return file;
  }
  absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) override {
    auto file = disk_->Create(path);
    if (!file.ok()) return file;
    if (IsInLog(path) && (plant_ == Plant::kCutForgotten || plant_ == Plant::kJobForgotten)) {
      return std::make_unique<ForgetfulFile>(plant_, *std::move(file));
    }
    if (!SkipsSyncs(plant_)) return file;
    return std::make_unique<PlantedFile>(*std::move(file));
  }
  absl::Status Rename(const std::string& from, const std::string& to) override {
    RETURN_IF_ERROR(disk_->Rename(from, to));
    if (plant_ == Plant::kAbandonedLedgerLost && absl::EndsWith(to, kManifestName)) {
      ledger_->Rewrite(to.substr(0, to.size() - kManifestName.size()), disk_.get());
    }
    return absl::OkStatus();
  }
  absl::Status HardLink(const std::string& from, const std::string& to) override {
    const std::string text = ReadFile(from, disk_.get()).value_or("");
    // Whoever announces that a change is dropped believes that the log has it.
    if (plant_ == Plant::kDroppedLost && absl::StrContains(text, kDropped)) return absl::OkStatus();
    const absl::Status status = disk_->HardLink(from, to);
    if (status.ok()) linked_ = to.substr(to.rfind('/') + 1);
    if (status.ok() && absl::StrContains(text, kCompacted)) has_compacted_ = true;
    if (plant_ != Plant::kLateLink || !absl::IsAlreadyExists(status)) return status;
    const size_t slash = to.rfind('/') + 1;
    int64_t number = 0;
    CHECK(absl::SimpleAtoi(to.substr(slash), &number));
    return HardLink(from,
                    absl::StrCat(to.substr(0, slash), absl::Dec(number + 1, absl::kZeroPad8)));
  }
  absl::Status CreateLink(const std::string& target, const std::string& path) override {
    return disk_->CreateLink(target, path);
  }
  absl::Status CreateFolders(const std::string& path) override {
    return disk_->CreateFolders(path);
  }
  absl::Status Remove(const std::string& path) override { return disk_->Remove(path); }
  absl::StatusOr<std::vector<std::string>> List(const std::string& folder) override {
    auto names = disk_->List(folder);
    if (!names.ok() || !IsInLog(folder + "/")) return names;
    if (plant_ == Plant::kListsOnce) {
      if (is_gone_) return listed_;
      listed_ = *names;
    }
    // Makes the entry that has just been linked look like the newest.
    if (plant_ == Plant::kStaleLinkCounts && !linked_.empty()) {
      names->erase(std::remove_if(names->begin(), names->end(),
                                  [this](const auto& name) { return IsAbove(name, linked_); }),
                   names->end());
      linked_.clear();
    }
    return names;
  }
  absl::Status SyncFolder(const std::string& folder) override {
    if (plant_ == Plant::kCompactedNotSynced && std::exchange(has_compacted_, false)) {
      return absl::OkStatus();
    }
    return disk_->SyncFolder(folder);
  }
  absl::StatusOr<std::unique_ptr<FileLock>> TryLock(const std::string& path,
                                                    LockKind kind) override {
    if (plant_ == Plant::kPinsIgnored) kind = LockKind::kShared;
    return disk_->TryLock(path, kind);
  }
  std::string LockHolders(const std::string& path) override { return disk_->LockHolders(path); }

 private:
  std::string linked_;          // the entry that was linked since the last List of the log
  bool has_compacted_ = false;  // the entry is a COMPACTED one, and its folder is not synced
  bool is_gone_ = false;        // a file of the log was found missing
  std::vector<std::string> listed_;
  const Plant plant_;
  const std::unique_ptr<FileSystem> disk_;
  const ForgetfulLedger* const ledger_;
};

bool IsPlanted(Plant plant, Role role) {
  switch (plant) {
    case Plant::kLateLink:
    case Plant::kEntriesNotSynced:
    case Plant::kPinsIgnored:
    case Plant::kStaleLinkCounts:
    case Plant::kListsOnce:
    case Plant::kCutForgotten:
    case Plant::kJobForgotten:
    case Plant::kCompactedNotSynced:
    case Plant::kDroppedLost:
      return role == COORDINATOR;
    case Plant::kFilesNotSynced:
      return role != COORDINATOR;
    case Plant::kAbandonedLedgerLost:
      return role == NN_WORKER;
    default:
      return false;
  }
}

}  // namespace

std::unique_ptr<FileSystem> NewPlantedDisk(Plant plant, Role role, std::unique_ptr<FileSystem> disk,
                                           const ForgetfulLedger* ledger) {
  if (!IsPlanted(plant, role)) return disk;
  return std::make_unique<PlantedDisk>(plant, std::move(disk), ledger);
}

}  // namespace satrap::simulation
