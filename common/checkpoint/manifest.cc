#include "common/checkpoint/manifest.h"

#include <map>
#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/durable_file.h"
#include "common/config/text_format.h"
#include "common/numeric/crc32c.h"
#include "common/numeric/hash.h"

namespace satrap {
namespace {

std::string PathIn(const std::string& directory) { return directory + "/manifest"; }

std::string LastLine(absl::string_view text) {
  return absl::StrFormat("# crc32c %08x\n", Crc32c(text));
}

}  // namespace

absl::Status WriteManifest(const std::string& directory, const CheckpointManifest& manifest,
                           FileSystem* file_system) {
  const std::string text = ToText(manifest);
  ASSIGN_OR_RETURN(const std::unique_ptr<DurableFile> file,
                   DurableFile::Create(PathIn(directory), file_system));
  RETURN_IF_ERROR(file->Append(text));
  RETURN_IF_ERROR(file->Append(LastLine(text)));
  return file->Commit();
}

absl::StatusOr<CheckpointManifest> ReadManifest(const std::string& directory) {
  const std::string path = PathIn(directory);
  const auto content = ReadWholeFile(path);
  if (absl::IsNotFound(content.status())) {
    return absl::NotFoundError(
        absl::StrCat(directory, " holds no saved model: it has no manifest"));
  }
  RETURN_IF_ERROR(content.status());
  // The checksum is tested before the text is parsed, so that damage is reported as damage and not
  // as a syntax error.
  const size_t last_line = content->rfind("# crc32c ");
  if (last_line == std::string::npos ||
      content->substr(last_line) != LastLine(absl::string_view(*content).substr(0, last_line))) {
    return absl::DataLossError(absl::StrCat(path, " is damaged: its checksum does not match"));
  }
  CheckpointManifest manifest;
  const absl::Status status = ParseText(*content, path, &manifest);
  if (!status.ok()) return absl::DataLossError(status.message());
  if (manifest.version() != kManifestVersion) {
    return absl::DataLossError(absl::StrCat(path, ": the model has format version ",
                                            manifest.version(), ", and this build reads only ",
                                            kManifestVersion, ": use the build that saved it"));
  }
  return manifest;
}

uint64_t ModelDigest(const CheckpointManifest& manifest) {
  // Sums over files do not depend on how the rows are split into files; the map fixes the order of
  // tables.
  std::map<uint32_t, uint64_t> digest_of_table;
  for (const SavedFile& file : manifest.table_files()) {
    digest_of_table[file.table()] += file.rows_digest();
  }
  std::string text;
  for (const auto& [table, digest] : digest_of_table)
    absl::StrAppend(&text, table, ":", digest, ";");
  absl::StrAppend(&text, "dense:", manifest.dense_crc32c());
  return Xxh64(text);
}

uint64_t TableFingerprint(const TableConfig& table) {
  std::string text = absl::StrCat("keys: mix64(id ^ xxh64(id space)); table ", table.id(), ";");
  for (const SegmentConfig& segment : table.segments()) {
    absl::StrAppend(&text, " segment ", segment.name(), " ", segment.dim(), " optimizer ",
                    static_cast<int>(segment.optimizer().kind_case()), ";");
  }
  return Xxh64(text);
}

}  // namespace satrap
