// A hard link whose outcome is known although an answer of the file server may be lost.
//
// NFS repeats a call whose answer did not come. If the first one had made the link, the second is
// refused with EEXIST by that very link. So after EEXIST the count of the file's names decides:
// nobody else links a file whose name only this process knows.
//
// Thread-safe: a function of its arguments and of the disk.

#ifndef SATRAP_COMMON_FILE_HARD_LINK_H_
#define SATRAP_COMMON_FILE_HARD_LINK_H_

#include <string>

#include "absl/functional/function_ref.h"

namespace satrap {

// Gives the file `from` a second name `to` by `link`, which returns 0, or -1 with errno, as link(2)
// does. Returns 0 if the link is there, otherwise the errno.
int HardLinkByCount(const std::string& from, const std::string& to,
                    absl::FunctionRef<int(const char* from, const char* to)> link);

}  // namespace satrap

#endif  // SATRAP_COMMON_FILE_HARD_LINK_H_
