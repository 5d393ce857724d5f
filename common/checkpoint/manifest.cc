#include "common/checkpoint/manifest.h"

#include <map>
#include <memory>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checked_text.h"
#include "common/file/durable_file.h"
#include "common/numeric/hash.h"

namespace satrap {
namespace {

// Whether rows of semantics GLOBAL store the segment's last step. They do if a gradient of 0
// changes only the state of the rule (SparseOptimizer::IdleStep::kState).
bool KeepsLastStep(const SegmentConfig& segment) {
  if (segment.l2_mode() == SegmentConfig::DENSE) return false;
  const SparseOptimizerConfig& optimizer = segment.optimizer();
  return optimizer.has_adadelta() || optimizer.has_decayed_adagrad() || optimizer.has_ftml() ||
         (optimizer.has_rmsprop() && optimizer.rmsprop().momentum() == 0);
}

std::string PathIn(const std::string& directory) { return directory + "/manifest"; }

}  // namespace

absl::Status WriteManifest(const std::string& directory, const CheckpointManifest& manifest,
                           FileSystem* file_system) {
  ASSIGN_OR_RETURN(const std::unique_ptr<DurableFile> file,
                   DurableFile::Create(PathIn(directory), file_system));
  RETURN_IF_ERROR(file->Append(CheckedText(manifest)));
  return file->Commit();
}

absl::StatusOr<CheckpointManifest> ReadManifest(const std::string& directory,
                                                FileSystem* file_system, uint32_t* crc32c) {
  const std::string path = PathIn(directory);
  ManifestVersions versions;
  const absl::Status status =
      ReadCheckedText(path, file_system, &versions, UnknownFields::kLeftOut);
  if (absl::IsNotFound(status)) {
    return absl::NotFoundError(
        absl::StrCat(directory, " holds no saved model: it has no manifest"));
  }
  RETURN_IF_ERROR(status);
  if (versions.min_reader_version() > kManifestVersion) {
    return absl::UnimplementedError(absl::StrCat(
        path, " needs a newer build: it is for readers of version ", versions.min_reader_version(),
        " and later, but this build is of version ", kManifestVersion));
  }
  if (versions.version() < kOldestManifestVersion) {
    return absl::DataLossError(absl::StrCat(
        path, ": the model has format version ", versions.version(), ", but this build reads only ",
        kOldestManifestVersion, " to ", kManifestVersion, ": use the build that saved it"));
  }
  // A newer build may have added fields.
  const UnknownFields unknown =
      versions.version() > kManifestVersion ? UnknownFields::kLeftOut : UnknownFields::kRefused;
  CheckpointManifest manifest;
  RETURN_IF_ERROR(ReadCheckedText(path, file_system, &manifest, unknown, crc32c));
  return manifest;
}

uint32_t MinReaderVersion(const CheckpointManifest& manifest) {
  std::set<std::string> names;
  for (const SavedFile& file : manifest.table_files()) {
    if (!names.insert(file.name()).second) return kManifestVersion;
  }
  return kOldestManifestVersion;
}

uint64_t FileOfManifest::bytes() const {
  uint64_t bytes = 0;
  for (const Part& part : parts) bytes += part.bytes;
  return bytes;
}

std::vector<FileOfManifest> FilesOf(const CheckpointManifest& manifest) {
  std::vector<FileOfManifest> files;
  std::map<std::string, size_t> by_name;
  const auto add = [&](const std::string& name, uint64_t bytes, uint32_t crc32c) {
    const auto at = by_name.emplace(name, files.size());
    if (at.second) files.push_back({name, {}});
    files[at.first->second].parts.push_back({bytes, crc32c});
  };
  for (const SavedFile& file : manifest.table_files()) {
    add(file.name(), file.bytes(), file.crc32c());
  }
  // A model saved without a dense network has no dense file.
  if (!manifest.dense_file().empty()) {
    add(manifest.dense_file(), manifest.dense_bytes(), manifest.dense_crc32c());
  }
  return files;
}

std::vector<PartOfFile> PartsOfFiles(const CheckpointManifest& manifest) {
  std::vector<PartOfFile> parts;
  struct End {
    uint64_t bytes = 0;
    size_t last = 0;  // index of the file's last entry so far
  };
  std::map<std::string, End> ends;  // by file; grows with each entry
  for (const SavedFile& file : manifest.table_files()) {
    const auto [end, is_first] = ends.emplace(file.name(), End());
    if (!is_first) parts[end->second.last].is_last = false;
    end->second.last = parts.size();
    parts.push_back({end->second.bytes, /*is_last=*/true});
    end->second.bytes += file.bytes();
  }
  return parts;
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

uint64_t TableFingerprint(const TableConfig& table, RowForm form) {
  std::string text = absl::StrCat("keys: mix64(id ^ xxh64(id space)); table ", table.id(), ";");
  for (const SegmentConfig& segment : table.segments()) {
    absl::StrAppend(&text, " segment ", segment.name(), " ", segment.dim(), " optimizer ",
                    static_cast<int>(segment.optimizer().kind_case()));
    // These settings make rows longer, too.
    if (segment.optimizer().has_rmsprop()) {
      if (segment.optimizer().rmsprop().centred()) absl::StrAppend(&text, " centred");
      if (segment.optimizer().rmsprop().momentum() > 0) absl::StrAppend(&text, " momentum");
    }
    const bool has_l2_step = segment.l2_mode() == SegmentConfig::TOUCHED;
    const bool has_last_step = table.semantics() == TableConfig::GLOBAL && KeepsLastStep(segment);
    if (has_l2_step) absl::StrAppend(&text, " l2 step");
    if (has_last_step) absl::StrAppend(&text, " last step");
    // The two forms differ only in the rows of these segments.
    const bool has_forms = has_l2_step || has_last_step || segment.optimizer().has_sgd_l1();
    if (has_forms && form != RowForm::kFirst) absl::StrAppend(&text, " form 2");
    absl::StrAppend(&text, ";");
  }
  return Xxh64(text);
}

}  // namespace satrap
