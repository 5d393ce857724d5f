// The manifest of a saved model: the file "manifest" in its folder, protobuf text of a
// CheckpointManifest followed by a last line "# crc32c XXXXXXXX" over all bytes before it.
// docs/formats.md, "Saved model".
//
// Thread-safe: functions of their arguments.

#ifndef SATRAP_COMMON_CHECKPOINT_MANIFEST_H_
#define SATRAP_COMMON_CHECKPOINT_MANIFEST_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/checkpoint/file_system.h"
#include "proto/checkpoint.pb.h"
#include "proto/table.pb.h"

namespace satrap {

inline constexpr uint32_t kManifestVersion = 2;

// Commits the model in `directory`. Errors as DurableFile. REQUIRES: its other files are durable
absl::Status WriteManifest(const std::string& directory, const CheckpointManifest& manifest,
                           FileSystem* file_system = DiskFileSystem());

// NOT_FOUND if the folder has no manifest, so no complete model; DATA_LOSS, naming the file, if the
// manifest is damaged or has another version.
absl::StatusOr<CheckpointManifest> ReadManifest(const std::string& directory,
                                                FileSystem* file_system = DiskFileSystem());

// Equal for models with the same bits in every row and in the dense network, regardless of how many
// embedding PSs saved them: XXH64 of each table's sum of rows_digest and of the dense file's
// checksum.
uint64_t ModelDigest(const CheckpointManifest& manifest);

// Equal for tables that can load each other's saved rows: XXH64 of a text of the key space, the
// segments, their dims and the kinds of their optimizers. Learning rates, bounds and other
// constants may change between save and load.
uint64_t TableFingerprint(const TableConfig& table);

}  // namespace satrap

#endif  // SATRAP_COMMON_CHECKPOINT_MANIFEST_H_
