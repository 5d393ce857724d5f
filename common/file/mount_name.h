// Which kind of file system a path lies on, for messages.
//
// Thread-safe: functions of their arguments and of the machine's mounts.

#ifndef SATRAP_COMMON_FILE_MOUNT_NAME_H_
#define SATRAP_COMMON_FILE_MOUNT_NAME_H_

#include <string>

#include "absl/strings/string_view.h"

namespace satrap {

// "ext4", "nfs4", "cifs", "fuse.s3fs": the kind of the file system on which `path` lies, or would
// if it existed. Empty if it cannot be known.
std::string MountNameOf(const std::string& path);

// The same for `path`, absolute and without links, by the text of /proc/self/mountinfo.
std::string MountNameIn(absl::string_view mountinfo, absl::string_view path);

}  // namespace satrap

#endif  // SATRAP_COMMON_FILE_MOUNT_NAME_H_
