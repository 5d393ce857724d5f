// A ByteSource gives the bytes of a file, decompressed, from one place on to the end of the file.
//
// A file that is read while it changes: its size when the splits were listed is the size it has
// for the whole run. One that has shrunk is an error, for its records are gone; of one that has
// grown, only the bytes that were there then are read, so every epoch has the same records. Another
// change is not noticed.
//
// Not thread-safe. It blocks on the disk: for the loader's parsing threads only.

#ifndef SATRAP_DATA_LOADER_SOURCE_BYTE_SOURCE_H_
#define SATRAP_DATA_LOADER_SOURCE_BYTE_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "data_loader/source/split_list.h"

namespace satrap {

class ByteSource {
 public:
  virtual ~ByteSource() = default;

  // Reads up to `size` bytes to `to` and returns how many; 0 only at the end of the file.
  // DATA_LOSS, naming the file and the offset on disk, if a compressed file is damaged or ends
  // early, and naming both sizes if the file has shrunk; other codes if the disk fails. After an
  // error the source is dead.
  // REQUIRES: size > 0
  virtual absl::StatusOr<size_t> Read(char* to, size_t size) = 0;

  // Bytes of the file as it lies on disk that have been read.
  virtual uint64_t disk_bytes() const = 0;
};

// Opens `path` at byte `from`. `file_bytes` is the file's size on disk as it was listed; 0: as long
// as it is. Errors name the file; DATA_LOSS if it has fewer bytes.
// REQUIRES: from == 0 if the file is compressed; from <= file_bytes if that is not 0
absl::StatusOr<std::unique_ptr<ByteSource>> OpenByteSource(const std::string& path,
                                                           Compression compression, uint64_t from,
                                                           uint64_t file_bytes = 0);

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_SOURCE_BYTE_SOURCE_H_
