// The disk operations that cuts and a run's log need. A test passes its own implementation to see
// their order, to let one of them fail, or to lose what was not synced.
//
// What is durable: Sync makes the bytes of a file durable, but not its name. A created, renamed or
// linked entry survives a power failure only after SyncFolder of the folder that holds it. If two
// entries are not synced, either of them may survive without the other. So a caller that replaces A
// by B syncs B's bytes, then B's folder, and only then removes A.
//
// Errors are those of FileError (common/file/file_error.h) and name the path. Thread-safe.

#ifndef SATRAP_COMMON_FILE_FILE_SYSTEM_H_
#define SATRAP_COMMON_FILE_FILE_SYSTEM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace satrap {

// A file being written. The destructor closes it and does not sync. Thread-compatible. After an
// error only the destructor may be called.
class WritableFile {
 public:
  virtual ~WritableFile() = default;
  virtual absl::Status Append(absl::string_view bytes) = 0;
  // Makes everything appended durable.
  virtual absl::Status Sync() = 0;
};

// A file being read from start to end. Thread-compatible.
class ReadableFile {
 public:
  virtual ~ReadableFile() = default;
  // The size that the file had when it was opened.
  virtual uint64_t size_bytes() const = 0;
  // Reads up to bytes.size() bytes into `bytes` and returns how many: fewer only at the end of the
  // file.
  virtual absl::StatusOr<size_t> Read(absl::Span<char> bytes) = 0;
  // Skips `bytes`, or what is left of the file if that is less. The default implementation calls
  // Read.
  virtual absl::Status Skip(uint64_t bytes);
};

// A lock of a file. It ends with this object, and with the process. Thread-compatible.
class FileLock {
 public:
  virtual ~FileLock() = default;
};
// A file may have any number of shared locks at a time, or one exclusive lock.
enum class LockKind { kShared, kExclusive };

class FileSystem {
 public:
  virtual ~FileSystem() = default;

  // NOT_FOUND if there is no such file.
  virtual absl::StatusOr<std::unique_ptr<ReadableFile>> Open(const std::string& path) = 0;

  // Creates an empty file at `path`. If there was a file, it loses its content.
  virtual absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) = 0;
  // Replaces `to`, which may be a file or a link.
  virtual absl::Status Rename(const std::string& from, const std::string& to) = 0;
  // Gives the file `from` a second name `to`, in one step. ALREADY_EXISTS, and nothing changes, if
  // `to` exists.
  virtual absl::Status HardLink(const std::string& from, const std::string& to) = 0;
  // Makes a symbolic link at `path`, which must not exist. `target` is relative to its folder.
  virtual absl::Status CreateLink(const std::string& target, const std::string& path) = 0;
  // Makes the folder and those above it, unless they exist.
  virtual absl::Status CreateFolders(const std::string& path) = 0;
  // Removes a file, a link, or a folder with everything in it. OK if `path` does not exist.
  virtual absl::Status Remove(const std::string& path) = 0;
  // The names in a folder, in no order. NOT_FOUND if there is no such folder.
  virtual absl::StatusOr<std::vector<std::string>> List(const std::string& folder) = 0;
  // Makes the entries of a folder durable: which names it has and which file each name refers to.
  virtual absl::Status SyncFolder(const std::string& folder) = 0;

  // Locks the file that `path` names, without waiting for other locks. Locks are advisory. While a
  // lock is held, `path` names the same file, unless a process removes or replaces the file without
  // a lock. A shared lock needs no right to write. UNAVAILABLE if another lock excludes it;
  // NOT_FOUND if there is no such file, or if it was removed before it was locked; UNIMPLEMENTED
  // where locks do not work (NFS without its lock service). The default implementation returns
  // UNIMPLEMENTED.
  virtual absl::StatusOr<std::unique_ptr<FileLock>> TryLock(const std::string& path, LockKind kind);
  // For people: the processes that hold locks of the file, such as "process 4711 (satrap_cli)";
  // empty if this machine cannot find out. The default implementation returns "".
  virtual std::string LockHolders(const std::string& path);
};

// The machine's own disk. Stateless; lives as long as the program.
FileSystem* DiskFileSystem();

// The whole content of the file. Errors are those of Open and Read.
absl::StatusOr<std::string> ReadFile(const std::string& path, FileSystem* file_system);

}  // namespace satrap

#endif  // SATRAP_COMMON_FILE_FILE_SYSTEM_H_
