// Copies what a role prints to its log in the run's folder and to stdout, from where Kubernetes
// takes it.
//
// The role writes to a pipe, which lives as long as this object, and a thread reads it. The log has
// a limit (common/file/file_history.h). A disk that is full or hangs costs lines of the log; one
// that hangs also stops a role that prints much, as it does if the role writes its log itself.
//
// For one thread, but that thread never waits for the disk or for stdout.

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
  // Appends to the file `path`, whose folder is made if needed, and to the descriptor `echo`. While
  // the file cannot be written, the lines go to `echo` alone. Errors as FileError.
  static absl::StatusOr<std::unique_ptr<RoleLog>> Open(const std::string& path,
                                                       const FileLimits& limits, int echo);
  // Does not wait for the thread.
  ~RoleLog();
  RoleLog(const RoleLog&) = delete;
  RoleLog& operator=(const RoleLog&) = delete;

  // What a role gets as its stdout and stderr.
  int input() const;
  // Adds a line of the supervisor. Lines that wait for a disk or for stdout have a bound, beyond
  // which the oldest is dropped.
  void Say(absl::string_view line);
  // Waits until all that was printed and said is copied, or the time is over.
  void Drain(int64_t timeout_ms);
  // Forgets what LastError knows.
  void BeginRole();
  // The line that most likely says why the role that printed since BeginRole has ended (LastErrorIn
  // in deploy/launcher/process/child_process.h).
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
