// The folder of a run's sockets: satrap-XXXXXX, mode 0700, in the system's temporary folder. It is
// not in the run folder because the path of a Unix socket may have 107 bytes, and that of a run
// folder any number.
//
// Its owner holds a lock on its file `owner`, which the kernel takes back however the owner
// ends. So who finds the lock free knows that a launcher was killed, and removes the folder that it
// could not remove; each Make does that first. (One killed within Make, before it has the lock,
// leaves an empty folder.) The file's text is the link that points to the folder, which goes with
// it.
//
// The destructor removes the folder, with what is in it, and the link. Not thread-safe.

#ifndef SATRAP_DEPLOY_LAUNCHER_SOCKET_FOLDER_H_
#define SATRAP_DEPLOY_LAUNCHER_SOCKET_FOLDER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace satrap {

class SocketFolder {
 public:
  // Makes a folder in `parent`, and points `link` at it, which may exist. Errors as FileError
  // (common/file_error.h).
  static absl::StatusOr<std::unique_ptr<SocketFolder>> Make(const std::string& parent,
                                                            const std::string& link);
  ~SocketFolder();
  SocketFolder(const SocketFolder&) = delete;
  SocketFolder& operator=(const SocketFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  SocketFolder(std::string path, std::string link);
  absl::Status Claim();

  const std::string path_;
  const std::string link_;
  int owner_fd_ = -1;
};

// Points `link` at `target`, replacing in one step what it pointed at before.
absl::Status ReplaceLink(const std::string& target, const std::string& link);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_LAUNCHER_SOCKET_FOLDER_H_
