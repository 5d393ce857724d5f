// The kind of file system on which a path lies, for messages.
//
// Thread-safe: the functions depend only on their arguments and on the machine's mounts.

#ifndef SATRAP_COMMON_FILE_MOUNT_NAME_H_
#define SATRAP_COMMON_FILE_MOUNT_NAME_H_

#include <string>

#include "absl/strings/string_view.h"

namespace satrap {

// The kind of the file system on which `path` lies, or would lie if it existed: "ext4", "nfs4",
// "cifs", "fuse.s3fs". Empty if it cannot be determined.
std::string MountNameOf(const std::string& path);

// Like MountNameOf, but takes the text of /proc/self/mountinfo. REQUIRES: `path` is absolute and
// has no links
std::string MountNameIn(absl::string_view mountinfo, absl::string_view path);

}  // namespace satrap

#endif  // SATRAP_COMMON_FILE_MOUNT_NAME_H_
