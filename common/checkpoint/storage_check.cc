#include "common/checkpoint/storage_check.h"

#include <unistd.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/shortage.h"
#include "common/base/status_macros.h"
#include "common/file/durable_file.h"

namespace satrap {
namespace {

constexpr char kProbePrefix[] = "storage_check.";
constexpr char kGoing[] = ".going";  // of such a folder that is being removed
constexpr char kMine[] = "mine\n";
constexpr char kOther[] = "other\n";

std::string RunIdPath(const std::string& run_dir) { return run_dir + "/run_id"; }

std::string RunIdText(uint64_t run_id) {
  return absl::StrCat(absl::Hex(run_id, absl::kZeroPad16), "\n");
}

// Performs the operations one after another, in a folder that only this check uses.
class Probe {
 public:
  Probe(const std::string& run_dir, absl::string_view mount_name, uint64_t writer,
        FileSystem* file_system)
      : run_dir_(run_dir),
        mount_name_(mount_name),
        folder_(absl::StrCat(run_dir, "/", kProbePrefix, absl::Hex(writer, absl::kZeroPad16))),
        file_system_(file_system) {}
  // If the removal fails, the files that are left cost a few bytes until LeaveRunId removes them.
  ~Probe() { file_system_->Remove(folder_).IgnoreError(); }

  absl::Status Run() {
    RETURN_IF_ERROR(Told("mkdir", file_system_->CreateFolders(folder_)));
    has_folder_ = true;
    RETURN_IF_ERROR(Write("draft", kMine));
    RETURN_IF_ERROR(Write("other", kOther));
    RETURN_IF_ERROR(CheckLinks());
    RETURN_IF_ERROR(CheckRename());
    RETURN_IF_ERROR(CheckLock());
    RETURN_IF_ERROR(Told("fsync of a folder", file_system_->SyncFolder(folder_)));
    return CheckNames();
  }

 private:
  std::string At(absl::string_view name) const { return absl::StrCat(folder_, "/", name); }

  absl::Status Write(absl::string_view name, absl::string_view text) {
    auto file = file_system_->Create(At(name));
    RETURN_IF_ERROR(Told("open", file.status()));
    RETURN_IF_ERROR(Told("write", (*file)->Append(text)));
    return Told("fsync", (*file)->Sync());
  }

  absl::Status Holds(absl::string_view call, absl::string_view name, absl::string_view text) {
    const absl::StatusOr<std::string> read = ReadFile(At(name), file_system_);
    RETURN_IF_ERROR(Told(call, read.status()));
    if (*read == text) return absl::OkStatus();
    return Lacks(call, absl::StrCat(At(name), " does not have the expected content afterwards"));
  }

  absl::Status CheckLinks() {
    RETURN_IF_ERROR(Told("link", file_system_->HardLink(At("draft"), At("entry"))));
    RETURN_IF_ERROR(Holds("link", "entry", kMine));
    // The log relies on this: of two processes that link the same name, only one succeeds.
    const absl::Status taken = file_system_->HardLink(At("other"), At("entry"));
    if (taken.ok()) return Lacks("link", "it replaces a name that exists already");
    if (!absl::IsAlreadyExists(taken)) return Told("link", taken);
    return Holds("link", "entry", kMine);
  }

  absl::Status CheckRename() {
    RETURN_IF_ERROR(Told("rename", file_system_->Rename(At("draft"), At("other"))));
    RETURN_IF_ERROR(Holds("rename", "other", kMine));
    return Told("symlink", file_system_->CreateLink("entry", At("latest")));
  }

  absl::Status CheckLock() {
    const auto lock = file_system_->TryLock(At("entry"), LockKind::kExclusive);
    return Told("flock", lock.status());
  }

  absl::Status CheckNames() {
    absl::StatusOr<std::vector<std::string>> names = file_system_->List(folder_);
    RETURN_IF_ERROR(Told("readdir", names.status()));
    std::sort(names->begin(), names->end());
    const std::vector<std::string> expected = {"entry", "latest", "other"};
    if (*names == expected) return absl::OkStatus();
    return Lacks("readdir", absl::StrCat("it lists ", absl::StrJoin(*names, ", "), " instead of ",
                                         absl::StrJoin(expected, ", ")));
  }

  // The error of the system call `call`, with an explanation of what it means for the run.
  absl::Status Told(absl::string_view call, const absl::Status& status) const {
    if (status.ok()) return status;
    if (has_folder_ && absl::IsNotFound(file_system_->List(folder_).status())) {
      return absl::AbortedError(absl::StrCat(
          folder_, " was removed by another coordinator of the run: ", status.message()));
    }
    // The status is returned unchanged, because its code and mark tell the caller what the machine
    // lacks.
    if (absl::IsResourceExhausted(status) || ShortageOf(status) != Shortage::kNone) return status;
    if (absl::IsPermissionDenied(status) && call != "link") {
      return absl::FailedPreconditionError(
          absl::StrCat(Begins(call), status.message(), ". This process runs as user ", geteuid(),
                       " and group ", getegid(), ", which need the right to write there"));
    }
    return Lacks(call, status.message());
  }

  absl::Status Lacks(absl::string_view call, absl::string_view why) const {
    return absl::FailedPreconditionError(absl::StrCat(
        Begins(call), why,
        ". A run needs hard links, renames, locks and syncs of folders: a local "
        "disk (ext4, XFS), NFS 4, CephFS and Lustre have them; SMB, FAT and most mounts of object "
        "stores do not"));
  }

  std::string Begins(absl::string_view call) const {
    return absl::StrCat("run_dir ", run_dir_, " cannot be used: `", call,
                        "` does not work on its file system (",
                        mount_name_.empty() ? "of an unknown kind" : mount_name_, "): ");
  }

  const std::string run_dir_;
  const std::string mount_name_;
  const std::string folder_;
  FileSystem* const file_system_;
  bool has_folder_ = false;
};

}  // namespace

absl::Status CheckStorage(const std::string& run_dir, absl::string_view mount_name, uint64_t writer,
                          FileSystem* file_system) {
  return Probe(run_dir, mount_name, writer, file_system).Run();
}

absl::Status LeaveRunId(const std::string& run_dir, uint64_t run_id, FileSystem* file_system) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, file_system->List(run_dir));
  for (const std::string& name : names) {
    if (!absl::StartsWith(name, kProbePrefix)) continue;
    const std::string folder = absl::StrCat(run_dir, "/", name);
    // Remove deletes files one by one. If a process that still works in the folder saw only some of
    // the files, it would conclude that the file system loses files. So the folder is renamed
    // first, and all its files are gone at once.
    if (!absl::EndsWith(name, kGoing) && file_system->Rename(folder, folder + kGoing).ok()) {
      RETURN_IF_ERROR(file_system->Remove(folder + kGoing));
    } else {
      RETURN_IF_ERROR(file_system->Remove(folder));
    }
  }
  if (SeesRun(run_dir, run_id, file_system).ok()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::unique_ptr<DurableFile> file,
                   DurableFile::Create(RunIdPath(run_dir), file_system));
  RETURN_IF_ERROR(file->Append(RunIdText(run_id)));
  return file->Commit();
}

absl::Status SeesRun(const std::string& run_dir, uint64_t run_id, FileSystem* file_system) {
  const absl::StatusOr<std::string> text = ReadFile(RunIdPath(run_dir), file_system);
  if (text.ok() && *text == RunIdText(run_id)) return absl::OkStatus();
  if (!text.ok() && !absl::IsNotFound(text.status()) && !absl::IsPermissionDenied(text.status())) {
    return text.status();
  }
  const std::string why = text.ok() ? absl::StrCat(RunIdPath(run_dir), " is that of another run")
                                    : std::string(text.status().message());
  return absl::FailedPreconditionError(absl::StrCat(
      "run_dir ", run_dir, " is not the coordinator's folder here: ", why,
      ". Every process of a run needs the same folder under the same path, and the right to read "
      "it"));
}

}  // namespace satrap
