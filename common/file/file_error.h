// Makes the status of a failed file operation from errno, so that its text and code are the same
// everywhere.
//
//     cannot write runs/demo/models/1/dense.bin: No space left on device
//
// Thread-safe: the functions depend only on their arguments.

#ifndef SATRAP_COMMON_FILE_FILE_ERROR_H_
#define SATRAP_COMMON_FILE_FILE_ERROR_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace satrap {

// "cannot DOING PATH: WHY" for the errno `error`.
//   RESOURCE_EXHAUSTED   no space left, a quota or the maximum file size is reached, too many files
//                        are open (ENOSPC, EDQUOT, EFBIG, EMFILE, ENFILE); no memory or no process
//                        left (ENOMEM, EAGAIN)
//   PERMISSION_DENIED    EACCES, EPERM, EROFS
//   NOT_FOUND            ENOENT, ENOTDIR
//   FAILED_PRECONDITION  the path names something that is not a file, or cannot name one (EEXIST,
//                        EISDIR, ENAMETOOLONG, ELOOP)
//   INTERNAL             the server of a network file system, or the process of a FUSE mount, does
//                        not answer or does not know the mount any more (ESTALE, ETIMEDOUT,
//                        ENOTCONN, ECONNABORTED, ESHUTDOWN, EHOSTDOWN, EHOSTUNREACH)
//   DATA_LOSS            everything else (EIO)
// EMFILE, ENFILE, ENOMEM, EAGAIN and those of INTERNAL are marked (common/base/shortage.h).
// Never UNAVAILABLE or DEADLINE_EXCEEDED, because callers retry on those.
// REQUIRES: error != 0
absl::Status FileError(absl::string_view doing, absl::string_view path, int error);

// Like FileError above, but takes errno from the calling thread.
absl::Status FileError(absl::string_view doing, absl::string_view path);

}  // namespace satrap

#endif  // SATRAP_COMMON_FILE_FILE_ERROR_H_
