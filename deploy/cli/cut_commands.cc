// checkpoint list, inspect, verify: the commands that look at saved cuts. They need no run in
// progress.

#include <cstdio>
#include <ctime>
#include <filesystem>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/manifest.h"
#include "common/checkpoint/run_log.h"
#include "deploy/cli/commands.h"
#include "deploy/cli/cut_files.h"
#include "deploy/cli/run_job.h"
#include "deploy/launcher/run_folder.h"

namespace satrap {
namespace {

absl::StatusOr<std::string> List(const std::string& typed) {
  ASSIGN_OR_RETURN(const std::string run_dir, FindRun(typed, kRunsDir));
  return ListCuts(run_dir, int64_t{1000} * time(nullptr));
}

absl::StatusOr<std::string> Inspect(const std::string& typed) {
  ASSIGN_OR_RETURN(const std::string folder, FindCutFolder(typed));
  ASSIGN_OR_RETURN(const CheckpointManifest manifest, ReadManifest(folder));
  // RUN/checkpoints/CUT; a cut that was moved elsewhere has no log.
  const std::string run_dir = std::filesystem::path(folder).parent_path().parent_path().string();
  const auto log = RunLog::Open(run_dir, DiskFileSystem());
  const GenerationEntry* generation = nullptr;
  if (log.ok()) {
    for (const RunLogEntry& entry : log->entries()) {
      if (entry.has_generation() && entry.generation().generation() <= manifest.generation()) {
        generation = &entry.generation();
      }
    }
  }
  return DescribeCut(folder, manifest, generation == nullptr ? nullptr : &generation->job());
}

absl::StatusOr<std::string> Verify(const std::string& typed) {
  ASSIGN_OR_RETURN(const std::string folder, FindCutFolder(typed));
  ASSIGN_OR_RETURN(const std::string line, VerifyCut(folder, DiskFileSystem()));
  return line + "\n";
}

int Print(const absl::StatusOr<std::string>& text) {
  if (!text.ok()) return PrintError(text.status());
  printf("%s", text->c_str());
  return 0;
}

}  // namespace

int ListCutsCommand(const CommandLine& line) { return Print(List(line.arguments[0])); }

int InspectCutCommand(const CommandLine& line) { return Print(Inspect(line.arguments[0])); }

int VerifyCutCommand(const CommandLine& line) { return Print(Verify(line.arguments[0])); }

}  // namespace satrap
