// A ByteSource reads the bytes of a file, decompressed, from one position to the end of the file.
//
// Files may change during a run. The size that a file had when the splits were listed counts for
// the whole run. A file that has shrunk is an error, because records are gone. Of a file that has
// grown only the first bytes, up to that size, are read, so that every epoch has the same records.
// A change that keeps the size goes unnoticed.
//
// Not thread-safe. Calls wait for the disk, so only the loader's parsing threads may use it.

#ifndef SATRAP_DATA_LOADER_SOURCE_BYTE_SOURCE_H_
#define SATRAP_DATA_LOADER_SOURCE_BYTE_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "data_loader/source/file_kind.h"

namespace satrap {

class ByteSource {
 public:
  virtual ~ByteSource() = default;

  // Reads up to `size` bytes to `to` and returns how many; 0 only at the end of the file.
  // DATA_LOSS if a compressed file is damaged or ends early (names the file and the offset on disk)
  // or if the file has shrunk (names both sizes); INVALID_ARGUMENT if decompressing would take more
  // memory than a loader gives to one file, RESOURCE_EXHAUSTED if there is no memory; other codes
  // if the disk fails. After an error the source must not be read again.
  // REQUIRES: size > 0
  virtual absl::StatusOr<size_t> Read(char* to, size_t size) = 0;

  // How many bytes of the file on disk have been read: compressed bytes, if it is compressed.
  virtual uint64_t disk_bytes() const = 0;
};

// Opens `path` at byte `from`. `file_bytes` is the size on disk with which the file was listed; 0
// reads to wherever it ends. Errors name the file; DATA_LOSS if it has fewer bytes.
// REQUIRES: from == 0 if the file is compressed; from <= file_bytes if that is not 0
absl::StatusOr<std::unique_ptr<ByteSource>> OpenByteSource(const std::string& path,
                                                           Compression compression, uint64_t from,
                                                           uint64_t file_bytes = 0);

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_SOURCE_BYTE_SOURCE_H_
