// A DurableFile appears under its name either complete or not at all: it is written as
// PATH.partial, synced and renamed, and then the folder is synced. It replaces an earlier file or
// link of that name. For a path that a user typed, which may be a pipe or a device, use
// WriteFileAtomically (deploy/launcher/process/run_folder.h).
//
// Thread-compatible.

#ifndef SATRAP_COMMON_FILE_DURABLE_FILE_H_
#define SATRAP_COMMON_FILE_DURABLE_FILE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/file/file_system.h"

namespace satrap {

class DurableFile {
 public:
  // Begins PATH.partial, replacing an old one. Errors are those of FileSystem. `file_system` is not
  // owned.
  static absl::StatusOr<std::unique_ptr<DurableFile>> Create(
      const std::string& path, FileSystem* file_system = DiskFileSystem());
  // Removes PATH.partial unless Commit succeeded.
  ~DurableFile();
  DurableFile(const DurableFile&) = delete;
  DurableFile& operator=(const DurableFile&) = delete;

  // Errors are those of Create. After an error only the destructor may be called.
  absl::Status Append(absl::string_view bytes);
  // Makes everything appended durable under PATH. REQUIRES: called at most once, and not followed
  // by an Append
  absl::Status Commit();

  // How many bytes were appended.
  uint64_t size_bytes() const { return size_bytes_; }
  // The checksum of all bytes appended, or of those since the last TakeCrc32c.
  uint32_t crc32c() const { return crc32c_; }
  // Returns crc32c(), and starts a new checksum for the next part of the file.
  uint32_t TakeCrc32c() { return std::exchange(crc32c_, 0); }

 private:
  DurableFile(std::string path, std::unique_ptr<WritableFile> file, FileSystem* file_system);

  const std::string path_;
  const std::string partial_path_;
  FileSystem* const file_system_;
  std::unique_ptr<WritableFile> file_;  // null after Commit
  uint64_t size_bytes_ = 0;
  uint32_t crc32c_ = 0;
};

}  // namespace satrap

#endif  // SATRAP_COMMON_FILE_DURABLE_FILE_H_
