// The manifest of a cut: the file "manifest" in its folder, a CheckpointManifest as checked text
// (checked_text.h). docs/formats.md, "Cut".
//
// A build reads manifests from kOldestManifestVersion to its own version. It also reads newer ones
// whose min_reader_version permits it, and then ignores the fields that it does not know.
//
// Thread-safe: the functions depend only on their arguments.

#ifndef SATRAP_COMMON_CHECKPOINT_MANIFEST_H_
#define SATRAP_COMMON_CHECKPOINT_MANIFEST_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/file/file_system.h"
#include "proto/checkpoint.pb.h"
#include "proto/table.pb.h"

namespace satrap {

inline constexpr uint32_t kManifestVersion = 4;
// The oldest version that this build reads. Version 4 added `features`, and files of several
// tables.
inline constexpr uint32_t kOldestManifestVersion = 3;
// The oldest reader version that can read a cut with this manifest. Readers older than version 4 do
// not know files of several tables.
uint32_t MinReaderVersion(const CheckpointManifest& manifest);

// Completes the cut in the folder `directory`. Errors are those of DurableFile. REQUIRES: the cut's
// other files are durable
absl::Status WriteManifest(const std::string& directory, const CheckpointManifest& manifest,
                           FileSystem* file_system = DiskFileSystem());

// NOT_FOUND if the folder has no manifest, and so no complete cut; DATA_LOSS, naming the file, if
// the manifest is damaged or older than kOldestManifestVersion; UNIMPLEMENTED if it needs a newer
// build. `crc32c`, if not null, receives the manifest's checksum (cut_identity.h).
absl::StatusOr<CheckpointManifest> ReadManifest(const std::string& directory,
                                                FileSystem* file_system = DiskFileSystem(),
                                                uint32_t* crc32c = nullptr);

// A file of a cut: the parts that the manifest's entries describe, one after another.
struct FileOfManifest {
  struct Part {
    uint64_t bytes = 0;
    uint32_t crc32c = 0;
  };
  std::string name;
  std::vector<Part> parts;
  uint64_t bytes() const;
};
// All files of the cut except its manifest, in the order of their first entries.
std::vector<FileOfManifest> FilesOf(const CheckpointManifest& manifest);

// The position of an entry of table_files in its file.
struct PartOfFile {
  uint64_t offset = 0;
  bool is_last = true;
};
// One element for each entry of table_files.
std::vector<PartOfFile> PartsOfFiles(const CheckpointManifest& manifest);

// Equal for models with the same bits in every row and in the dense network, no matter how many
// embedding PSs saved them: XXH64 of each table's sum of rows_digest and of the dense file's
// checksum.
uint64_t ModelDigest(const CheckpointManifest& manifest);

// Equal for tables that can load each other's saved rows: XXH64 of a text of the key space, the
// segments, their dims, the kinds of their optimizers and everything else that makes rows longer:
// RMSProp with momentum or centred, l2_mode TOUCHED, and semantics GLOBAL with rules that then keep
// a row's last step. Learning rates, bounds and other constants may change between save and load.
// Older builds wrote rows in the first form, which this build converts
// (embedding_ps/checkpoint/row_form.h).
enum class RowForm { kFirst, kSecond };
uint64_t TableFingerprint(const TableConfig& table, RowForm form = RowForm::kSecond);

}  // namespace satrap

#endif  // SATRAP_COMMON_CHECKPOINT_MANIFEST_H_
