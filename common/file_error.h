// The status of a file operation that failed, from errno: one text and one code wherever files are
// opened, read and written.
//
//     cannot write runs/demo/models/1/dense.bin: No space left on device
//
// Thread-safe: functions of their arguments.

#ifndef SATRAP_COMMON_FILE_ERROR_H_
#define SATRAP_COMMON_FILE_ERROR_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace satrap {

// "cannot DOING PATH: WHY" for the errno `error`.
//   RESOURCE_EXHAUSTED   no space, a quota or the largest size of a file is reached, too many are
//                        open (ENOSPC, EDQUOT, EFBIG, EMFILE, ENFILE); no memory or no process to
//                        be had (ENOMEM, EAGAIN)
//   PERMISSION_DENIED    EACCES, EPERM, EROFS
//   NOT_FOUND            ENOENT, ENOTDIR
//   FAILED_PRECONDITION  the path names something else, or cannot be a file's (EEXIST, EISDIR,
//                        ENAMETOOLONG, ELOOP)
//   DATA_LOSS            all else (EIO)
// Never UNAVAILABLE or DEADLINE_EXCEEDED, with which a call that was lost is repeated.
// REQUIRES: error != 0
absl::Status FileError(absl::string_view doing, absl::string_view path, int error);

// As above, for the errno that the calling thread's last operation has left.
absl::Status FileError(absl::string_view doing, absl::string_view path);

}  // namespace satrap

#endif  // SATRAP_COMMON_FILE_ERROR_H_
