#include "deploy/launcher/process/cut_check.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/checkpoint/cut_identity.h"
#include "common/checkpoint/manifest.h"

namespace satrap {

std::vector<FileOfCut> FilesOfCut(const std::string& folder, const CheckpointManifest& manifest) {
  std::vector<FileOfCut> files;
  for (FileOfManifest& file : FilesOf(manifest)) {
    files.push_back({absl::StrCat(folder, "/", file.name), file.bytes(), std::move(file.parts)});
  }
  return files;
}

std::string CutProblem(const RunLog& log, const std::string& run_dir, const std::string& cut,
                       FileSystem* file_system) {
  const std::string folder = FolderOfCut(run_dir, cut);
  if (absl::IsNotFound(file_system->List(folder).status())) {
    return absl::StrCat("missing: ", folder);
  }
  uint32_t crc32c = 0;
  const auto manifest = ReadManifest(folder, file_system, &crc32c);
  if (!manifest.ok()) return absl::StrCat("damaged: ", manifest.status().message());
  // Check this before the files, because the folder may hold all files of another cut.
  const absl::Status identity = CheckCutIdentity(log, folder, *manifest, crc32c);
  if (!identity.ok()) return absl::StrCat("damaged: ", identity.message());
  for (const FileOfCut& expected : FilesOfCut(folder, *manifest)) {
    const auto file = file_system->Open(expected.path);
    if (!file.ok()) return absl::StrCat("damaged: ", file.status().message());
    if ((*file)->size_bytes() != expected.bytes) {
      return absl::StrCat("damaged: ", expected.path, " has ", (*file)->size_bytes(),
                          " bytes, but was written with ", expected.bytes);
    }
  }
  return "";
}

}  // namespace satrap
