// A file of saved rows. It has one or more consecutive parts; each part holds the rows of one table
// in a range of partitions. Parts are written and read from start to end. All numbers of a part are
// little-endian (docs/formats.md, "Saved rows"):
//
//     header, 64 bytes:  "SATRROW3"  u32 table  u32 first partition  u32 last partition
//                        u32 floats per row  u64 table fingerprint
//                        u32 CRC32C of the 32 bytes before  zeros
//     blocks:            u32 number of rows n, 1 to 16384  u32 CRC32C of n and of what follows
//                        u64 key [n]  f32 row [n, floats per row]
//     end, 16 bytes:     u32 0  u32 CRC32C of 0 and of what follows  u64 rows of the part
//
// Keys ascend through the part.
//
// Thread-compatible.

#ifndef SATRAP_EMBEDDING_PS_CHECKPOINT_ROW_FILE_H_
#define SATRAP_EMBEDDING_PS_CHECKPOINT_ROW_FILE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/checkpoint/manifest.h"
#include "common/file/durable_file.h"
#include "common/file/file_system.h"
#include "embedding_ps/table/embedding_table.h"
#include "proto/control.pb.h"

namespace satrap {

inline constexpr char kRowFileMagic[] = "SATRROW3";
inline constexpr size_t kRowFileHeaderBytes = 64;
inline constexpr size_t kRowBlockHeaderBytes = 8;
// The most rows that a reader accepts. A writer makes smaller blocks (cut_writer.cc).
inline constexpr size_t kMaxRowsPerBlock = 16384;

// The name of a file with one part.
std::string RowFileName(uint32_t table, int first_partition, int last_partition);

// Writes a file. If Commit is not called, no file remains.
class RowFileWriter {
 public:
  // Creates the file `name` in `directory`. Errors are those of DurableFile. `file_system` is not
  // owned.
  static absl::StatusOr<std::unique_ptr<RowFileWriter>> Create(const std::string& name,
                                                               const std::string& directory,
                                                               FileSystem* file_system);

  // Begins a part. If another part is open, it ends first.
  absl::Status BeginPart(const EmbeddingTable& table, int first_partition, int last_partition);
  // Appends a block. REQUIRES: a part has been begun; 1 to kMaxRowsPerBlock keys, which are larger
  // than all earlier keys of the part; rows.size() == keys.size() * num_floats
  absl::Status Append(absl::Span<const uint64_t> keys, absl::Span<const float> rows);

  // Makes the file durable and returns its parts, in their order. REQUIRES: no call follows this
  // one, and none has returned an error
  absl::StatusOr<std::vector<SavedFile>> Commit();

 private:
  RowFileWriter(std::string name, std::unique_ptr<DurableFile> file);
  absl::Status EndPart();

  const std::string name_;
  const std::unique_ptr<DurableFile> file_;
  std::vector<SavedFile> parts_;  // the last one is being written
  uint64_t part_begins_ = 0;      // bytes before the last part
  uint64_t rows_digest_ = 0;      // of the last part
};

// The form of a part's rows, as its header states it.
struct RowFormat {
  uint64_t fingerprint = 0;  // TableFingerprint of the table that was saved
  size_t num_floats = 0;     // of a row
};
RowFormat RowFormatOf(const EmbeddingTable& table);

// Reads one part of a file in `directory`. `saved`, an entry of a manifest, describes the part,
// which begins at `where`. Calls visit(keys, rows) for each block after verifying its checksum. The
// rows are [keys.size(), num_floats]. DATA_LOSS if the file is missing, truncated or not the one
// that `saved` describes, if a byte has changed, or if its keys do not ascend within its
// partitions. The message names the file and, if it is damaged, the offset.
absl::Status ReadRowFile(
    const std::string& directory, const SavedFile& saved, const PartOfFile& where,
    const RowFormat& format, FileSystem* file_system,
    absl::FunctionRef<void(absl::Span<const uint64_t> keys, absl::Span<const float> rows)> visit);

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_PS_CHECKPOINT_ROW_FILE_H_
