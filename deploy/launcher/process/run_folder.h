// The folder of a run, and the folder of its sockets.
//
//   runs/deepfm-20260131-235959/     under the current folder, or as given
//     job.textproto                  the resolved job, for people; the log has the one that counts
//     lock                           locked by the process that runs the run; holds its pid
//     logs/embedding_ps_0.log        one for each role and index, for all generations
//     log, checkpoints               see common/checkpoint/run_log.h
//     sockets -> the folder of the run's sockets (socket_folder.h)
//     report.json, failure.txt, ending.textproto, metrics.jsonl, quarantine, models:
//                                    written by other code
//   runs/latest -> deepfm-20260131-235959     the newest training
//
// While this object lives, it holds the lock, and so do the processes that this process forks. No
// other process can run the run until they have ended, too. The destructor removes the sockets. It
// also removes a job file that is still empty: the run never began, so the next run may use the
// folder. Not thread-safe.

#ifndef SATRAP_DEPLOY_LAUNCHER_PROCESS_RUN_FOLDER_H_
#define SATRAP_DEPLOY_LAUNCHER_PROCESS_RUN_FOLDER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "deploy/launcher/process/socket_folder.h"

namespace satrap {

// The folder, in the user's current directory, for runs whose own folder is not given.
inline constexpr char kRunsDir[] = "runs";
// If a run has failed, its folder has its Ending under this path, for programs. People read
// failure.txt.
inline constexpr char kEndingOfRun[] = "/ending.textproto";

class RunFolder {
 public:
  // Makes RUNS_DIR/NAME-YYYYmmdd-HHMMSS, with the local time, and if `is_latest` also the link
  // `latest` to it. An error names what could not be made and why (no space, no permission).
  static absl::StatusOr<std::unique_ptr<RunFolder>> CreateUnder(const std::string& runs_dir,
                                                                const std::string& name,
                                                                bool is_latest);
  // Makes the folder `path`, or uses it if it exists. FAILED_PRECONDITION if it holds a run
  // already, even one that is just starting: if two processes call this, only one gets the folder.
  static absl::StatusOr<std::unique_ptr<RunFolder>> CreateAt(const std::string& path);

  // Checks that CreateAt could make a run at `path` now, without changing anything. Errors are
  // those of CreateAt.
  static absl::Status CheckFree(const std::string& path);

  // Opens the folder of a run that has begun, in order to continue it. FAILED_PRECONDITION if
  // another process still runs it after half a second; the message names that process.
  static absl::StatusOr<std::unique_ptr<RunFolder>> Reopen(const std::string& path);

  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string JobPath() const;
  std::string LogPath(absl::string_view process) const;        // "embedding_ps_0"
  std::string SocketAddress(absl::string_view process) const;  // "unix:..."
  // The file to which `process` writes its Ending. It is in the folder of the sockets, because the
  // run's disk may be full or hang.
  std::string EndingPath(absl::string_view process) const;

 private:
  RunFolder(std::string path, int lock_fd, std::unique_ptr<SocketFolder> sockets)
      : path_(std::move(path)), lock_fd_(lock_fd), sockets_(std::move(sockets)) {}
  static absl::StatusOr<std::unique_ptr<RunFolder>> Fill(const std::string& path);

  const std::string path_;
  const int lock_fd_;
  const std::unique_ptr<SocketFolder> sockets_;
};

// Writes a whole file that a user has named. A regular or new file is written as a DurableFile
// (common/file/durable_file.h). A link, a pipe or a device is not replaced but written to; a file
// under /dev is not truncated, because /dev/stdout may be a regular file. If a pipe's reader has
// ended, that is not an error, provided that this process ignores SIGPIPE. Errors are those of
// FileError (common/file/file_error.h).
absl::Status WriteFileAtomically(const std::string& path, absl::string_view content);

// Like WriteFileAtomically, with the bytes that `source` passes to its sink. An error of `source`
// is returned, and then a regular file stays as it was.
using ByteSink = absl::FunctionRef<absl::Status(absl::string_view bytes)>;
absl::Status WriteFileAtomically(const std::string& path,
                                 absl::FunctionRef<absl::Status(ByteSink)> source);

// Like WriteFileAtomically, with the content of the file `from`.
absl::Status CopyFileAtomically(const std::string& from, const std::string& path);

// Checks, without changing anything, whether WriteFileAtomically could write `path` now: it is not
// a folder, and its own folder exists and is writable. Errors are those of FileError.
absl::Status CheckWritable(const std::string& path);

// The process that runs the run in `run_dir`, as "process N"; "another process" if its pid is not
// known; empty if no process runs the run.
std::string RunnerOf(const std::string& run_dir);

// Waits until no process runs the run any more, so that it can be reopened. False if a process
// still does after `timeout_ms`.
bool WaitUntilReleased(const std::string& run_dir, int64_t timeout_ms);

// The run folder that `run` names: a path, or the name of a folder under `runs_dir`; if `run` is
// empty, the newest training there. NOT_FOUND says where the run was looked for.
absl::StatusOr<std::string> FindRun(const std::string& run, const std::string& runs_dir);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_LAUNCHER_PROCESS_RUN_FOLDER_H_
