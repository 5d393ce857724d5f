// Checks the storage of a run before anything begins: that the file system of run_dir can do what a
// run needs, and that every process sees the same folder there.
//
//     coordinator   CheckStorage; claims the generation; LeaveRunId
//     other roles   SeesRun, before they report that they are ready
//
// While CheckStorage works, the folder RUN/storage_check.WRITER exists. If a process is killed
// during the check and leaves the folder behind, the next LeaveRunId removes it. RUN/run_id holds
// the run id.
//
// Blocking. Thread-safe: the functions depend only on their arguments and on the disk.

#ifndef SATRAP_COMMON_CHECKPOINT_STORAGE_CHECK_H_
#define SATRAP_COMMON_CHECKPOINT_STORAGE_CHECK_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/file/file_system.h"

namespace satrap {

// Makes, writes, syncs, links, renames, locks and lists files in `run_dir`, which is made if it
// does not exist. `mount_name`: the kind of the file system (common/file/mount_name.h), for the
// message; may be empty. `writer`: a random number of this process. Errors:
//   FAILED_PRECONDITION  the file system, or this process's rights there, do not suffice; the
//                        message names the folder, the file system, the call and the cure
//   RESOURCE_EXHAUSTED   there is no room, or the machine lacks memory or descriptors; the error is
//                        that of FileSystem
//   INTERNAL             the file server does not answer; the error is that of FileSystem
//   ABORTED              another coordinator has claimed the run meanwhile and removed the folder
absl::Status CheckStorage(const std::string& run_dir, absl::string_view mount_name, uint64_t writer,
                          FileSystem* file_system);

// Writes RUN/run_id unless it holds this run id already, and removes the folders that CheckStorage
// of other processes has left behind. Errors are those of FileSystem. REQUIRES: this process has
// claimed the newest generation
absl::Status LeaveRunId(const std::string& run_dir, uint64_t run_id, FileSystem* file_system);

// OK if RUN/run_id holds `run_id`. FAILED_PRECONDITION if the file is missing, holds another run
// id, or this process has no right to read it: then `run_dir` is not the same folder here as for
// the coordinator, or a network file system still answers from its cache. Other errors are those of
// ReadFile.
absl::Status SeesRun(const std::string& run_dir, uint64_t run_id, FileSystem* file_system);

}  // namespace satrap

#endif  // SATRAP_COMMON_CHECKPOINT_STORAGE_CHECK_H_
