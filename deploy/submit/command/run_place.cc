#include "deploy/submit/command/run_place.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "common/config/kubernetes_names.h"
#include "common/file/file_system.h"
#include "deploy/launcher/process/run_folder.h"

namespace satrap {
namespace {

std::string FolderOfNotes(const std::string& runs_dir) { return runs_dir + "/.in_cluster"; }

std::string PathOfNote(const std::string& runs_dir, const std::string& run) {
  return absl::StrCat(FolderOfNotes(runs_dir), "/", run);
}

// The namespaces in which the run is noted.
absl::StatusOr<std::vector<std::string>> Noted(const std::string& runs_dir,
                                               const std::string& run) {
  const absl::StatusOr<std::string> text = ReadFile(PathOfNote(runs_dir, run), DiskFileSystem());
  if (absl::IsNotFound(text.status())) return std::vector<std::string>();
  RETURN_IF_ERROR(text.status());
  return std::vector<std::string>(absl::StrSplit(*text, '\n', absl::SkipEmpty()));
}

absl::Status Write(const std::string& runs_dir, const std::string& run,
                   const std::vector<std::string>& spaces) {
  return WriteFileAtomically(PathOfNote(runs_dir, run), absl::StrJoin(spaces, "\n") + "\n");
}

}  // namespace

absl::Status NoteNamespace(const std::string& runs_dir, const std::string& run,
                           const std::string& space) {
  ASSIGN_OR_RETURN(std::vector<std::string> spaces, Noted(runs_dir, run));
  if (std::find(spaces.begin(), spaces.end(), space) != spaces.end()) return absl::OkStatus();
  spaces.push_back(space);
  RETURN_IF_ERROR(DiskFileSystem()->CreateFolders(FolderOfNotes(runs_dir)));
  return Write(runs_dir, run, spaces);
}

void ForgetNamespace(const std::string& runs_dir, const std::string& run,
                     const std::string& space) {
  absl::StatusOr<std::vector<std::string>> spaces = Noted(runs_dir, run);
  if (!spaces.ok()) return;
  const auto end = std::remove(spaces->begin(), spaces->end(), space);
  if (end == spaces->end()) return;
  spaces->erase(end, spaces->end());
  const absl::Status forgotten = spaces->empty()
                                     ? DiskFileSystem()->Remove(PathOfNote(runs_dir, run))
                                     : Write(runs_dir, run, *spaces);
  forgotten.IgnoreError();
}

absl::StatusOr<std::string> NamespaceOf(const std::string& run, const std::string& given,
                                        const std::string& runs_dir) {
  if (!given.empty() || !IsRunName(run)) return given;
  ASSIGN_OR_RETURN(const std::vector<std::string> spaces, Noted(runs_dir, run));
  if (spaces.empty()) return "";
  const absl::StatusOr<std::string> folder = FindRun(run, runs_dir);
  if (spaces.size() == 1 && !folder.ok()) return spaces[0];
  std::string places =
      absl::StrCat("in the cluster (--namespace ", absl::StrJoin(spaces, " or --namespace "), ")");
  if (folder.ok()) {
    // A path with a slash is never the name of a run in a cluster.
    const std::string path = *folder == run ? "./" + run : *folder;
    absl::StrAppend(&places, " and in the folder ", path);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("there are several runs ", run, ", ", places, ": which one is meant?"));
}

}  // namespace satrap
