// A ByteSource reads the decompressed bytes of a file, from one position to the end of the file.
//
// Files may change during a run. For the whole run, a file has the size that it had when the splits
// were listed. If it has shrunk, that is an error, because records are missing. If it has grown,
// only the bytes up to the original size are read, so that every epoch has the same records. A
// change that keeps the size is not noticed.
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

  // Reads up to `size` bytes into `to`, and returns their number; 0 only at the end of the file.
  // DATA_LOSS if a compressed file is damaged or ends early (names the file and the offset on
  // disk), or if the file has shrunk (names both sizes); INVALID_ARGUMENT if decompressing would
  // take more memory than a loader allows for one file; RESOURCE_EXHAUSTED if there is no memory;
  // other codes if the disk fails. After an error the source must not be read again. REQUIRES: size
  // > 0
  virtual absl::StatusOr<size_t> Read(char* to, size_t size) = 0;

  // The number of bytes of the file on disk that have been read; of a compressed file, compressed
  // bytes.
  virtual uint64_t disk_bytes() const = 0;
};

// Opens `path` at byte `from`. `file_bytes` is the size on disk that the file had when it was
// listed; 0 means to read to the current end. Errors name the file; DATA_LOSS if it has fewer
// bytes. REQUIRES: from == 0 if the file is compressed; from <= file_bytes if that is not 0
absl::StatusOr<std::unique_ptr<ByteSource>> OpenByteSource(const std::string& path,
                                                           Compression compression, uint64_t from,
                                                           uint64_t file_bytes = 0);

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_SOURCE_BYTE_SOURCE_H_
