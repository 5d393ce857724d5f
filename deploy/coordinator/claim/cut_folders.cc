#include "deploy/coordinator/claim/cut_folders.h"

#include <memory>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "common/base/count_text.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/cut_pin.h"
#include "common/checkpoint/manifest.h"

namespace satrap {
namespace {

// Turns an error about a file into the error for a damaged cut. Callers would mistake the original
// code for an error about the request.
absl::Status NotWhole(const absl::Status& error) { return absl::DataLossError(error.message()); }

absl::Status CheckFile(const std::string& path, uint64_t bytes, FileSystem* file_system) {
  const auto file = file_system->Open(path);
  if (absl::IsNotFound(file.status())) {
    return absl::DataLossError(
        absl::StrCat("the coordinator finds no ", path,
                     ": the run's folder must be the same for the processes of all roles"));
  }
  if (!file.ok()) return NotWhole(file.status());
  if ((*file)->size_bytes() == bytes) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(path, " has ", (*file)->size_bytes(),
                                          " bytes, but the cut's manifest says ", bytes));
}

std::set<std::string> CommittedCuts(const RunLog& log) {
  std::set<std::string> cuts;
  for (const RunLogEntry& entry : log.entries()) {
    if (entry.has_cut()) cuts.insert(entry.cut().cut());
  }
  return cuts;
}

}  // namespace

absl::StatusOr<CutEntry> CutFolders::Check(const std::string& name) const {
  const absl::optional<CutId> id = ParseCutName(name);
  if (!id.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat("cut: '", name, "' is not the name of a cut"));
  }
  const std::string folder = absl::StrCat(Dir(), "/", name);
  const absl::Status another_generation = absl::FailedPreconditionError(absl::StrCat(
      "the cut in ", folder, " is not of the coordinator's generation, ", generation_));
  if (id->generation != generation_) return another_generation;
  uint32_t manifest_crc32c = 0;
  const auto manifest = ReadManifest(folder, file_system_, &manifest_crc32c);
  if (!manifest.ok()) return NotWhole(manifest.status());
  if (manifest->generation() != generation_) return another_generation;
  if (manifest->cut() != id->number) {
    return absl::InvalidArgumentError(
        absl::StrCat("cut: the manifest in ", folder, " is of cut ", manifest->cut()));
  }
  uint64_t bytes = 0;
  for (const FileOfManifest& file : FilesOf(*manifest)) {
    RETURN_IF_ERROR(CheckFile(absl::StrCat(folder, "/", file.name), file.bytes(), file_system_));
    bytes += file.bytes();
  }
  CutEntry entry;
  entry.set_generation(generation_);
  entry.set_cut(name);
  entry.set_step(manifest->step());
  entry.set_bytes(bytes);
  entry.set_order_fingerprint(manifest->order_fingerprint());
  entry.set_manifest_crc32c(manifest_crc32c);
  return entry;
}

absl::Status CutFolders::MoveLink(const std::string& link, const std::string& cut) {
  const std::string path = absl::StrCat(Dir(), "/", link);
  const std::string draft = path + ".partial";
  RETURN_IF_ERROR(file_system_->Remove(draft));  // left by a coordinator that died here
  RETURN_IF_ERROR(file_system_->CreateLink(cut, draft));
  return file_system_->Rename(draft, path);
}

// The best cut that `cut` records; empty if it records none. This may differ from the best cut that
// the log names last: the run may have been set back to a cut before that one.
absl::StatusOr<std::string> CutFolders::BestOf(const std::string& cut) const {
  ASSIGN_OR_RETURN(const CheckpointManifest manifest,
                   ReadManifest(FolderOfCut(run_dir_, cut), file_system_));
  return manifest.position().best().cut();
}

absl::Status CutFolders::MoveLinks(const RunLog& log) {
  const std::string latest = log.next_start();
  if (latest.empty()) return absl::OkStatus();
  RETURN_IF_ERROR(MoveLink("latest", latest));
  ASSIGN_OR_RETURN(const std::string best, BestOf(latest));
  if (best.empty()) {
    RETURN_IF_ERROR(file_system_->Remove(absl::StrCat(Dir(), "/best")));
  } else {
    RETURN_IF_ERROR(MoveLink("best", best));
  }
  return file_system_->SyncFolder(Dir());
}

absl::Status CutFolders::RemoveCut(const std::string& name) {
  const std::string folder = absl::StrCat(Dir(), "/", name);
  ASSIGN_OR_RETURN(std::unique_ptr<FileLock> nobody_reads, LockToRemoveCut(folder, file_system_));
  // Remove the manifest first: a folder that is only partly removed must not look like a whole cut.
  RETURN_IF_ERROR(file_system_->Remove(folder + "/manifest"));
  // Without its manifest nobody can pin the cut any more, so the lock on the manifest is no longer
  // needed. Release it now: on NFS a file that is open keeps a name in its folder, so the folder
  // could not be removed.
  nobody_reads.reset();
  return file_system_->Remove(folder);
}

absl::Status CutFolders::OnPinned(const std::string& name) {
  const int calls = ++pinned_[name];
  if (calls % kCallsUntilPinIsTold != 0) return absl::OkStatus();
  const std::string folder = absl::StrCat(Dir(), "/", name);
  const std::string holders = file_system_->LockHolders(folder + "/manifest");
  return absl::UnavailableError(absl::StrCat(
      folder, " is older than the cuts that are kept, and was not removed at ",
      Counted(static_cast<uint64_t>(calls), "cut"), " in a row, because it is being read by ",
      holders.empty() ? "a process of another machine or container" : holders,
      "; it is removed at the next cut after that process has ended or is done"));
}

absl::Status CutFolders::RemoveOld(const RunLog& log, int keep,
                                   const std::function<void(const std::string& cut)>& begins) {
  std::set<std::string> kept;
  int newest = 0;
  for (auto entry = log.entries().rbegin(); entry != log.entries().rend(); ++entry) {
    // Keep at least the newest cut, because the next generation begins from it.
    if (!entry->has_cut() || newest >= std::max(keep, 1)) continue;
    kept.insert(entry->cut().cut());
    ++newest;
    // Also keep the best cut that this cut records: a run that continues from this cut needs the
    // best one for its test pass.
    const absl::StatusOr<std::string> best = BestOf(entry->cut().cut());
    if (absl::IsNotFound(best.status())) continue;  // no run can continue from it any more
    // If the cut cannot be read now, it is not known which best cut it needs, so remove nothing.
    RETURN_IF_ERROR(best.status());
    kept.insert(*best);
  }
  const std::set<std::string> committed = CommittedCuts(log);
  absl::Status told;
  ASSIGN_OR_RETURN(const std::vector<std::string> names, file_system_->List(Dir()));
  for (const std::string& name : names) {
    if (committed.count(name) == 0 || kept.count(name) > 0) continue;
    if (begins) begins(name);
    const absl::Status removed = RemoveCut(name);
    if (!absl::IsUnavailable(removed)) {
      RETURN_IF_ERROR(removed);
      pinned_.erase(name);
    } else if (absl::Status pinned = OnPinned(name); !pinned.ok()) {
      told = std::move(pinned);
    }
  }
  return told;
}

absl::Status CutFolders::RemoveUncommitted(const RunLog& log) {
  const auto names = file_system_->List(Dir());
  if (absl::IsNotFound(names.status())) return absl::OkStatus();
  RETURN_IF_ERROR(names.status());
  const std::set<std::string> committed = CommittedCuts(log);
  for (const std::string& name : *names) {
    const absl::optional<CutId> id = ParseCutName(name);
    if (!id.has_value() || id->generation >= generation_ || committed.count(name) > 0) {
      continue;
    }
    const absl::Status removed = RemoveCut(name);
    if (!absl::IsUnavailable(removed)) RETURN_IF_ERROR(removed);
  }
  return absl::OkStatus();
}

}  // namespace satrap
