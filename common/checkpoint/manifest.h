// The manifest of a cut: the file "manifest" in its folder, a CheckpointManifest as checked text
// (checked_text.h). docs/formats.md, "Cut".
//
// A build reads the manifests of its own version, of the ones from kOldestManifestVersion on, and
// of newer ones that say that it may (min_reader_version); what it does not know of those it leaves
// out.
//
// Thread-safe: functions of their arguments.

#ifndef SATRAP_COMMON_CHECKPOINT_MANIFEST_H_
#define SATRAP_COMMON_CHECKPOINT_MANIFEST_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/checkpoint/file_system.h"
#include "proto/checkpoint.pb.h"
#include "proto/table.pb.h"

namespace satrap {

inline constexpr uint32_t kManifestVersion = 4;
// The oldest that this build reads. Version 4 added `features`, and files of several tables.
inline constexpr uint32_t kOldestManifestVersion = 3;
// What a build needs to read a cut of this one: an older one does not know files of several
// tables.
uint32_t MinReaderVersion(const CheckpointManifest& manifest);

// Makes the folder `directory` a whole cut. Errors as DurableFile. REQUIRES: its other files are
// durable
absl::Status WriteManifest(const std::string& directory, const CheckpointManifest& manifest,
                           FileSystem* file_system = DiskFileSystem());

// NOT_FOUND if the folder has no manifest, so no whole cut; DATA_LOSS, naming the file, if the
// manifest is damaged or is older than kOldestManifestVersion; UNIMPLEMENTED if it needs a newer
// build. `crc32c`, if not null, gets the manifest's checksum (cut_identity.h).
absl::StatusOr<CheckpointManifest> ReadManifest(const std::string& directory,
                                                FileSystem* file_system = DiskFileSystem(),
                                                uint32_t* crc32c = nullptr);

// A file of a cut: the parts that entries of the manifest describe, one after another.
struct FileOfManifest {
  struct Part {
    uint64_t bytes = 0;
    uint32_t crc32c = 0;
  };
  std::string name;
  std::vector<Part> parts;
  uint64_t bytes() const;
};
// All files of the cut but its manifest, in the order of their first entries.
std::vector<FileOfManifest> FilesOf(const CheckpointManifest& manifest);

// Where an entry of table_files lies in its file.
struct PartOfFile {
  uint64_t offset = 0;
  bool is_last = true;
};
// By entry.
std::vector<PartOfFile> PartsOfFiles(const CheckpointManifest& manifest);

// Equal for models with the same bits in every row and in the dense network, regardless of how many
// embedding PSs saved them: XXH64 of each table's sum of rows_digest and of the dense file's
// checksum.
uint64_t ModelDigest(const CheckpointManifest& manifest);

// Equal for tables that can load each other's saved rows: XXH64 of a text of the key space, the
// segments, their dims, the kinds of their optimizers and what else makes rows longer: RMSProp with
// momentum or centred, l2_mode TOUCHED, semantics GLOBAL of rules that then keep a row's last step.
// Learning rates, bounds and other constants may change between save and load. Older builds
// wrote rows in the first form, which this build converts (embedding_ps/checkpoint/row_form.h).
enum class RowForm { kFirst, kSecond };
uint64_t TableFingerprint(const TableConfig& table, RowForm form = RowForm::kSecond);

}  // namespace satrap

#endif  // SATRAP_COMMON_CHECKPOINT_MANIFEST_H_
