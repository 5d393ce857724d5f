// Saving the rows of a table: one file for each range of 256 partitions that the PS owns rows of.
//
// A file is a header and blocks, all numbers little-endian (docs/formats.md, "Saved rows"):
//
//     header, 64 bytes:  "SATRROW2"  u32 table  u32 first partition  u32 last partition
//                        u32 floats a row  u64 table fingerprint  u64 rows
//                        u32 CRC32C of the 40 bytes before  zeros
//     block:             u32 rows n, 1 to 16384  u32 CRC32C of n and of what follows
//                        u64 key [n]  f32 row [n, floats a row]
//
// Keys ascend through the file. Thread-safe.

#ifndef SATRAP_EMBEDDING_PS_CHECKPOINT_SAVE_TABLES_H_
#define SATRAP_EMBEDDING_PS_CHECKPOINT_SAVE_TABLES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "embedding_ps/table/embedding_table.h"
#include "proto/control.pb.h"

namespace satrap {

inline constexpr char kRowFileMagic[] = "SATRROW2";
inline constexpr size_t kRowFileHeaderBytes = 64;
inline constexpr size_t kRowBlockHeaderBytes = 8;
inline constexpr size_t kMaxRowsPerBlock = 16384;
inline constexpr int kPartitionsPerFile = 256;

// Writes the rows of PS `ps_index` of `num_ps` into `directory`, durably, and returns what was
// written. A row that is updated meanwhile is saved as it was before or after the update. Errors as
// DurableFile; files written before the error stay.
absl::StatusOr<std::vector<SavedFile>> SaveTable(const EmbeddingTable& table, int ps_index,
                                                 int num_ps, const std::string& directory);

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_PS_CHECKPOINT_SAVE_TABLES_H_
