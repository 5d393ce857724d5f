#include "tests/simulation/sim_plants_disk.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"

namespace satrap::simulation {
namespace {

constexpr absl::string_view kManifestName = "/manifest";

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

class PlantedDisk final : public FileSystem {
 public:
  PlantedDisk(Plant plant, std::unique_ptr<FileSystem> disk, const ForgetfulLedger* ledger)
      : plant_(plant), disk_(std::move(disk)), ledger_(ledger) {}

  absl::StatusOr<std::unique_ptr<ReadableFile>> Open(const std::string& path) override {
    return disk_->Open(path);
  }
  absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) override {
    auto file = disk_->Create(path);
    if (!file.ok() || !SkipsSyncs(plant_)) return file;
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
    const absl::Status status = disk_->HardLink(from, to);
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
    return disk_->List(folder);
  }
  absl::Status SyncFolder(const std::string& folder) override { return disk_->SyncFolder(folder); }
  absl::StatusOr<std::unique_ptr<FileLock>> TryLock(const std::string& path,
                                                    LockKind kind) override {
    if (plant_ == Plant::kPinsIgnored) kind = LockKind::kShared;
    return disk_->TryLock(path, kind);
  }
  std::string LockHolders(const std::string& path) override { return disk_->LockHolders(path); }

 private:
  const Plant plant_;
  const std::unique_ptr<FileSystem> disk_;
  const ForgetfulLedger* const ledger_;
};

bool IsPlanted(Plant plant, Role role) {
  switch (plant) {
    case Plant::kLateLink:
    case Plant::kEntriesNotSynced:
    case Plant::kPinsIgnored:
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
