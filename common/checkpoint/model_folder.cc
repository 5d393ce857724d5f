#include "common/checkpoint/model_folder.h"

#include <filesystem>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/cut_name.h"
#include "common/checkpoint/cut_pin.h"
#include "common/checkpoint/manifest.h"
#include "common/file/file_error.h"

namespace satrap {

namespace fs = std::filesystem;

absl::StatusOr<std::string> FindSavedModel(const std::string& path) {
  const fs::path checkpoints = CheckpointsDir(path);
  for (const fs::path& directory : {fs::path(path), checkpoints / "best", checkpoints / "latest",
                                    fs::path(path) / "best", fs::path(path) / "latest"}) {
    const absl::Status status = ReadManifest(directory.string()).status();
    if (absl::IsNotFound(status)) continue;
    RETURN_IF_ERROR(status);
    std::error_code error;
    const fs::path canonical = fs::canonical(directory, error);
    if (error) return FileError("read", directory.string(), error.value());
    return canonical.string();
  }
  RETURN_IF_ERROR(RemovedCutError(path));
  return absl::NotFoundError(absl::StrCat(
      "no saved model in ", path,
      ": it is neither a cut (it has no manifest) nor a run (it has neither checkpoints/best nor "
      "checkpoints/latest)"));
}

}  // namespace satrap
