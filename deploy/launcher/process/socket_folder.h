// The folder of a run's sockets: satrap-XXXXXX, mode 0700, in the temporary folder (TMPDIR of the
// environment, or the system's). It is not in the run folder, because the path of a Unix socket is
// limited to 107 bytes, and that of a run folder may be longer.
//
// The launcher that owns the folder holds a lock on its file `owner`. The kernel releases the lock
// however the launcher ends. So a free lock means that the launcher was killed and could not remove
// its folder; every Make first removes such folders. (A launcher that is killed within Make, before
// it has the lock, leaves an empty folder behind.) The content of `owner` is the path of the link
// that points to the folder, so that the link can be removed as well.
//
// The destructor removes the folder with its content, and the link. Not thread-safe.

#ifndef SATRAP_DEPLOY_LAUNCHER_PROCESS_SOCKET_FOLDER_H_
#define SATRAP_DEPLOY_LAUNCHER_PROCESS_SOCKET_FOLDER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace satrap {

class SocketFolder {
 public:
  // Makes a folder in `parent`, and the link `link` to it, which replaces an existing link. Errors
  // are those of FileError (common/file/file_error.h).
  static absl::StatusOr<std::unique_ptr<SocketFolder>> Make(const std::string& parent,
                                                            const std::string& link);
  // Like Make, with the temporary folder as `parent`. Two errors are added: one of FileError if
  // TMPDIR does not name a folder, and INVALID_ARGUMENT if the folder's path is too long for
  // sockets in it. All errors mention TMPDIR.
  static absl::StatusOr<std::unique_ptr<SocketFolder>> MakeInTemporaryFolder(
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

// Makes the link `link` to `target`. Replaces an existing link in one step.
absl::Status ReplaceLink(const std::string& target, const std::string& link);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_LAUNCHER_PROCESS_SOCKET_FOLDER_H_
