#include "common/checkpoint/cut_identity.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace satrap {
namespace {

namespace fs = std::filesystem;

// The first difference between the entry's cut and the manifest's; empty if they are the same cut.
std::string Difference(const CutEntry& entry, const std::string& name,
                       const CheckpointManifest& manifest, uint32_t manifest_crc32c) {
  const std::string name_inside = CutName(manifest.generation(), manifest.cut());
  if (name_inside != name) return absl::StrCat("its manifest is that of ", name_inside);
  if (manifest.step() != entry.step()) {
    return absl::StrCat("its manifest is of step ", manifest.step(),
                        ", but the log's entry is of step ", entry.step());
  }
  if (entry.has_order_fingerprint() && manifest.order_fingerprint() != entry.order_fingerprint()) {
    return absl::StrFormat("its manifest has the sample order %016x, but the log's entry has %016x",
                           manifest.order_fingerprint(), entry.order_fingerprint());
  }
  if (entry.has_manifest_crc32c() && manifest_crc32c != entry.manifest_crc32c()) {
    return absl::StrFormat("its manifest has the checksum %08x, but the log's entry has %08x",
                           manifest_crc32c, entry.manifest_crc32c());
  }
  return "";
}

}  // namespace

absl::Status CheckCutIdentity(const RunLog& log, const std::string& folder,
                              const CheckpointManifest& manifest, uint32_t manifest_crc32c) {
  const std::string name = folder.substr(folder.rfind('/') + 1);
  const CutEntry* entry = log.FindCut(name);
  if (entry == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("the run's log has no cut ", name, ", so ", folder, " was not committed"));
  }
  const std::string difference = Difference(*entry, name, manifest, manifest_crc32c);
  if (difference.empty()) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat(folder, " is not the cut that the run's log names: ", difference));
}

absl::StatusOr<std::string> NameOfCut(const RunLog& log, const std::string& run_dir,
                                      const std::string& typed) {
  // Both sides are resolved, so that links, relative paths and runs that were moved can be
  // compared.
  std::error_code error;
  const fs::path checkpoints = fs::weakly_canonical(CheckpointsDir(run_dir), error);
  const bool is_path = absl::StrContains(typed, "/");
  const fs::path folder =
      fs::weakly_canonical(is_path ? fs::path(typed) : checkpoints / typed, error);
  if (typed.empty() || error || folder.parent_path() != checkpoints) {
    return absl::FailedPreconditionError(absl::StrCat(
        "cut '", typed, "' is not in ", checkpoints.string(),
        ": a run continues only from its own cuts. To train a new run from another model: `satrap "
        "train JOB --init_from ",
        is_path ? typed : "CUT", "`"));
  }
  std::string name = folder.filename().string();
  if (log.FindCut(name) != nullptr) return name;
  return absl::FailedPreconditionError(absl::StrCat(
      "cut '", typed, "' is not in the log of the run in ", run_dir,
      ": it was never committed, or belongs to another run. `satrap checkpoint list RUN` shows the "
      "cuts from which the run can continue; to train a new run from another model: "
      "`satrap train JOB --init_from ",
      folder.string(), "`"));
}

}  // namespace satrap
