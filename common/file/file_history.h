// A file that is cut by its size. PATH.1 is what was written before, PATH.2 what was written before
// that, and so on, as far as the history goes.
//
// Thread-compatible. The files must have one writer of names.

#ifndef SATRAP_COMMON_FILE_FILE_HISTORY_H_
#define SATRAP_COMMON_FILE_FILE_HISTORY_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace satrap {

struct FileLimits {
  int64_t bytes = int64_t{64} << 20;  // of one file
  int older = 4;                      // files
};

// Gives `path` the name PATH.1, after PATH.1 has got PATH.2 and so on; what had the last name is
// gone. Errors as FileError (file_error.h); a name that could not be given up stays.
absl::Status MoveToHistory(const std::string& path, int older);

// If the file at `path` has more than `limits.bytes`, copies it to PATH.1, after the older ones
// have moved on, and empties it: for a file that another process writes, which has it open to
// append. What that process writes between the two is lost. Errors as FileError; then the file is
// as it was.
absl::Status CutForeignFile(const std::string& path, const FileLimits& limits);

}  // namespace satrap

#endif  // SATRAP_COMMON_FILE_FILE_HISTORY_H_
