// A hard link whose outcome is known even if an answer of the file server is lost.
//
// NFS repeats a call that got no answer. If the first call has made the link, the second fails with
// EEXIST because of that link. So after EEXIST the file's link count decides: if it has grown, the
// first call made the link. No other process links the file, because only this process knows its
// name.
//
// Thread-safe: a function of its arguments and of the disk.

#ifndef SATRAP_COMMON_FILE_HARD_LINK_H_
#define SATRAP_COMMON_FILE_HARD_LINK_H_

#include <string>

#include "absl/functional/function_ref.h"

namespace satrap {

// Gives the file `from` a second name `to` by calling `link`, which returns 0, or -1 with errno, as
// link(2) does. Returns 0 if the link exists now, otherwise the errno.
int HardLinkByCount(const std::string& from, const std::string& to,
                    absl::FunctionRef<int(const char* from, const char* to)> link);

}  // namespace satrap

#endif  // SATRAP_COMMON_FILE_HARD_LINK_H_
