// Copies what a role prints to its log in the run's folder, and to stdout, which Kubernetes
// collects.
//
// The role writes to a pipe, which exists as long as this object, and a thread reads from it. The
// log has a size limit (common/file/file_history.h). While the disk is full or hangs, lines are
// missing in the log. A disk that hangs also stops a role that prints much, as if the role wrote
// its log itself.
//
// For use by one thread, which never waits for the disk or for stdout.

#ifndef SATRAP_DEPLOY_POD_ROLE_LOG_H_
#define SATRAP_DEPLOY_POD_ROLE_LOG_H_

#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/file/file_history.h"

namespace satrap {

class RoleLog {
 public:
  // Opens a log that appends everything printed to the file `path`, whose folder is made if needed,
  // and also copies it to the descriptor `echo`. While the file cannot be written, the lines go
  // only to `echo`. Errors are those of FileError.
  static absl::StatusOr<std::unique_ptr<RoleLog>> Open(const std::string& path,
                                                       const FileLimits& limits, int echo);
  // Does not wait for the thread.
  ~RoleLog();
  RoleLog(const RoleLog&) = delete;
  RoleLog& operator=(const RoleLog&) = delete;

  // The descriptor that a role must use as its stdout and stderr.
  int input() const;
  // Adds a line from the supervisor. If too many lines wait for the disk or for stdout, the oldest
  // is dropped.
  void Say(absl::string_view line);
  // Waits until everything that the role has printed so far, and every line given to Say, is
  // copied, but at most `timeout_ms`.
  void Drain(int64_t timeout_ms);
  // Call before a role starts: LastError forgets what was printed before.
  void BeginRole();
  // Of the lines printed since BeginRole, the one that most likely says why the role has ended
  // (LastErrorIn in deploy/launcher/process/child_process.h).
  std::string LastError() const;

 private:
  struct Work;
  explicit RoleLog(std::shared_ptr<Work> work);
  static void Serve(const std::shared_ptr<Work>& work);

  const std::shared_ptr<Work> work_;  // shared with the thread
  std::thread thread_;
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_POD_ROLE_LOG_H_
