#include "common/checkpoint/cut_pin.h"

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/manifest.h"
#include "common/checkpoint/run_log.h"

namespace satrap {
namespace {

std::string ManifestOf(const std::string& folder) { return folder + "/manifest"; }

}  // namespace

absl::StatusOr<std::unique_ptr<FileLock>> PinCut(const std::string& folder,
                                                 FileSystem* file_system) {
  absl::StatusOr<std::unique_ptr<FileLock>> pin =
      file_system->TryLock(ManifestOf(folder), LockKind::kShared);
  if (absl::IsUnimplemented(pin.status())) return nullptr;
  // Another process holds the exclusive lock. Only the removal of a cut takes that lock.
  if (absl::IsUnavailable(pin.status())) {
    return absl::NotFoundError(absl::StrCat(folder, " is being removed"));
  }
  if (absl::IsNotFound(pin.status())) {
    // ReadManifest's error says that the folder holds no model.
    const absl::Status manifest = ReadManifest(folder, file_system).status();
    if (absl::IsNotFound(manifest)) return manifest;
  }
  return pin;
}

absl::StatusOr<std::unique_ptr<FileLock>> LockToRemoveCut(const std::string& folder,
                                                          FileSystem* file_system) {
  absl::StatusOr<std::unique_ptr<FileLock>> lock =
      file_system->TryLock(ManifestOf(folder), LockKind::kExclusive);
  if (absl::IsUnimplemented(lock.status()) || absl::IsNotFound(lock.status())) return nullptr;
  return lock;
}

bool HasVanished(const std::string& folder, FileSystem* file_system) {
  return absl::IsNotFound(file_system->Open(ManifestOf(folder)).status());
}

absl::Status RemovedCutError(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).lexically_normal();
  const std::filesystem::path checkpoints = folder.parent_path();
  if (!ParseCutName(folder.filename().string()).has_value() ||
      checkpoints.string() != CheckpointsDir(checkpoints.parent_path().string())) {
    return absl::OkStatus();
  }
  return absl::NotFoundError(
      absl::StrCat(path,
                   " no longer exists: its run keeps only its newest cuts and the best one "
                   "(checkpoint.keep). To read the run's best or newest cut, name the run: ",
                   checkpoints.parent_path().string()));
}

}  // namespace satrap
