#include "nn_worker/checkpoint/saved_model.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/manifest.h"
#include "common/checkpoint/run_log.h"
#include "common/file/file_error.h"
#include "common/numeric/crc32c.h"

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
  return absl::NotFoundError(absl::StrCat(
      "no saved model in ", path,
      ": it is not the folder of a cut, because it has no manifest, and it is not that "
      "of a run, because it has neither checkpoints/best nor checkpoints/latest"));
}

absl::StatusOr<std::string> ReadDense(const std::string& directory, FileSystem* file_system) {
  ASSIGN_OR_RETURN(const CheckpointManifest manifest, ReadManifest(directory, file_system));
  const std::string path = absl::StrCat(directory, "/", manifest.dense_file());
  absl::StatusOr<std::string> dense = ReadFile(path, file_system);
  if (!dense.ok()) return absl::DataLossError(dense.status().message());
  if (dense->size() != manifest.dense_bytes() || Crc32c(*dense) != manifest.dense_crc32c()) {
    return absl::DataLossError(absl::StrCat(path, " is damaged: size or checksum do not match"));
  }
  return dense;
}

}  // namespace satrap
