// The command `checkpoint`. Its forms `checkpoint list`, `inspect` and `verify` read saved cuts and
// need no run in progress.

#include <cstdio>
#include <ctime>
#include <filesystem>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/cut_pin.h"
#include "common/checkpoint/manifest.h"
#include "common/checkpoint/run_log.h"
#include "deploy/cli/commands.h"
#include "deploy/cli/run_job.h"
#include "deploy/cli/show/cut_files.h"
#include "deploy/launcher/process/run_folder.h"
#include "deploy/submit/cluster_flags.h"
#include "deploy/submit/kubectl/kubectl.h"
#include "deploy/submit/run_reader.h"

namespace satrap {
namespace {

// In a pod of the run, `typed` is the run's folder itself. FindRun would not accept it, because no
// launcher has marked it.
absl::StatusOr<std::string> ListedCuts(const std::string& typed, bool is_in_pod) {
  const absl::StatusOr<std::string> run_dir = is_in_pod ? typed : FindRun(typed, kRunsDir);
  RETURN_IF_ERROR(run_dir.status());
  return ListCuts(*run_dir, int64_t{1000} * time(nullptr));
}

// `folder` is RUN/checkpoints/CUT. Returns RUN, the folder of the run whose log commits this cut.
std::string RunOfCut(const std::string& folder) {
  return std::filesystem::path(folder).parent_path().parent_path().string();
}

// Finds the folder of the cut that the user typed, and returns read(folder). If the cut is removed
// meanwhile, tries again: a run or a link then refers to a newer cut.
absl::StatusOr<std::string> OfCut(
    const std::string& typed,
    const std::function<absl::StatusOr<std::string>(const std::string&)>& read) {
  for (int reads = 1;; ++reads) {
    ASSIGN_OR_RETURN(const std::string folder, FindCutFolder(typed));
    absl::StatusOr<std::string> text = read(folder);
    if (!absl::IsNotFound(text.status()) || reads == kReadsOfVanishingCuts) return text;
  }
}

absl::StatusOr<std::string> Inspect(const std::string& folder) {
  ASSIGN_OR_RETURN(const CheckpointManifest manifest, ReadManifest(folder));
  // A cut that was moved elsewhere has no log.
  const auto log = RunLog::Open(RunOfCut(folder), DiskFileSystem());
  const GenerationEntry* generation = nullptr;
  if (log.ok()) {
    for (const RunLogEntry& entry : log->entries()) {
      if (entry.has_generation() && entry.generation().generation() <= manifest.generation()) {
        generation = &entry.generation();
      }
    }
  }
  // A compacted log does not have the jobs of cuts that it no longer names.
  const bool has_job = generation != nullptr && generation->has_job();
  return DescribeCut(folder, manifest, has_job ? &generation->job() : nullptr);
}

absl::StatusOr<std::string> Verify(const std::string& folder) {
  ASSIGN_OR_RETURN(const RunLog log, RunLog::Open(RunOfCut(folder), DiskFileSystem()));
  const bool has_log = !log.entries().empty();
  ASSIGN_OR_RETURN(const std::string line,
                   VerifyCut(folder, DiskFileSystem(), has_log ? &log : nullptr));
  return absl::StrCat(
      line,
      has_log ? "\n" : "; it is in no run's folder, so it was not compared with a run's log\n");
}

// If the run has no pods, a pod is started to read its folder.
absl::Status ListInCluster(const std::string& run, const std::string& space) {
  const absl::Status status = RunInCoordinatorPod(run, space, {"checkpoint", "list"});
  if (!absl::IsFailedPrecondition(status) && !absl::IsNotFound(status)) return status;
  Kubectl kubectl(space);
  BlockSignalsOfStream();
  ASSIGN_OR_RETURN(const std::string list, ReadInPod(run, {"checkpoint", "list"}, /*more=*/{},
                                                     &kubectl, SayLine, WaitForSignal));
  printf("%s", list.c_str());
  return absl::OkStatus();
}

// Normally replaces this process by kubectl. Returns if that fails or the run has no pods.
absl::Status InCluster(const std::string& word, const std::string& run, const std::string& space) {
  if (word.empty()) return RunInCoordinatorPod(run, space, {"checkpoint"});
  if (word == "list") return ListInCluster(run, space);
  return absl::InvalidArgumentError(
      absl::StrCat("`checkpoint ", word,
                   "` reads a folder: --namespace is for `checkpoint RUN` "
                   "and `checkpoint list RUN`"));
}

}  // namespace

int CheckpointCommand(const CommandCall& call) {
  PlaceFlags flags;
  const auto typed = ParseCheckpoint(call, flags.Table());
  if (!typed.ok()) return PrintError(typed.status());
  const auto& [word, path] = *typed;
  // The other two subcommands take the folder of a cut.
  const bool takes_run = word.empty() || word == "list";
  if (takes_run && flags.coordinator.empty()) {
    const absl::Status found = FindNamespace(path, &flags.space);
    if (!found.ok()) return PrintError(found);
  }
  if (!flags.space.empty()) {
    const absl::Status shown = InCluster(word, path, flags.space);
    return shown.ok() ? 0 : PrintError(shown);
  }
  if (word.empty()) return TakeCutOf(path, flags);
  if (word == "list") return PrintText(ListedCuts(path, /*is_in_pod=*/!flags.coordinator.empty()));
  return PrintText(OfCut(path, word == "inspect" ? Inspect : Verify));
}

}  // namespace satrap
