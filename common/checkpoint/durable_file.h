// A DurableFile appears complete under its name or not at all: it is written as NAME.partial,
// synced and renamed. Whatever had the name before, even a link, is replaced. For a path that a
// user typed, which may be a pipe or a device, use WriteFileAtomically
// (deploy/launcher/run_folder.h).
//
// Thread-compatible.

#ifndef SATRAP_COMMON_CHECKPOINT_DURABLE_FILE_H_
#define SATRAP_COMMON_CHECKPOINT_DURABLE_FILE_H_

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace satrap {

class DurableFile {
 public:
  // Creates PATH.partial, replacing an old one. Errors as FileError (common/file_error.h), naming
  // PATH.
  static absl::StatusOr<std::unique_ptr<DurableFile>> Create(const std::string& path);
  // Removes PATH.partial unless Commit succeeded.
  ~DurableFile();
  DurableFile(const DurableFile&) = delete;
  DurableFile& operator=(const DurableFile&) = delete;

  // Errors as Create; after an error, only destroy the file.
  absl::Status Append(absl::string_view bytes);
  // Makes everything appended durable under PATH. REQUIRES: called at most once, and Append not
  // after it
  absl::Status Commit();

  // Of the bytes appended.
  uint64_t size_bytes() const { return size_bytes_; }
  uint32_t crc32c() const { return crc32c_; }

 private:
  DurableFile(std::string path, FILE* file);

  const std::string path_;
  const std::string partial_path_;
  FILE* file_;
  uint64_t size_bytes_ = 0;
  uint32_t crc32c_ = 0;
};

}  // namespace satrap

#endif  // SATRAP_COMMON_CHECKPOINT_DURABLE_FILE_H_
