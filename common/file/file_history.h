// Keeps a file below a size limit by moving its content to older files: PATH.1 is what was written
// before, PATH.2 what was written before that, and so on, up to a number of older files.
//
// CutForeignFile is thread-safe, also among processes: while one cuts a file, the others leave it
// alone. MoveToHistory is for one thread of one process at a time.

#ifndef SATRAP_COMMON_FILE_FILE_HISTORY_H_
#define SATRAP_COMMON_FILE_FILE_HISTORY_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace satrap {

struct FileLimits {
  int64_t bytes = int64_t{64} << 20;  // the limit of one file
  int older = 4;                      // the number of older files
};

// Renames `path` to PATH.1, after PATH.1 was renamed to PATH.2 and so on; the oldest file is
// replaced. A file that could not be renamed keeps its name. Errors are those of FileError
// (file_error.h).
absl::Status MoveToHistory(const std::string& path, int older);

// If the file at `path` has more than `limits.bytes`, renames its older copies (PATH.1 to PATH.2
// and so on), copies it to PATH.1 and empties it. Use this for a file that another process holds
// open for appending. What that process writes between the copy and the emptying is lost. Errors
// are those of FileError; the file is then unchanged.
absl::Status CutForeignFile(const std::string& path, const FileLimits& limits);

}  // namespace satrap

#endif  // SATRAP_COMMON_FILE_FILE_HISTORY_H_
