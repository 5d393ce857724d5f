// A reader pins a cut, so that the run that made the cut, which may still be training, does not
// remove it (checkpoint.keep). A pin is a shared lock of the cut's manifest. The run asks for the
// exclusive lock before it removes a cut; if it does not get the lock, it tries again later.
//
// The lock is on the manifest itself, because in a folder that is mounted read-only no other file
// can be made. A cut's manifest is removed before its other files. So a reader that holds the lock
// and still finds the manifest also finds the other files. Where locks do not work, nothing is
// pinned, and a reader whose cut vanishes looks for the newest cut again.
//
// Thread-safe: the functions depend only on their arguments and on the disk.

#ifndef SATRAP_COMMON_CHECKPOINT_CUT_PIN_H_
#define SATRAP_COMMON_CHECKPOINT_CUT_PIN_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/file/file_system.h"

namespace satrap {

// How many times a reader tries to read a cut before it gives up, if each cut that it finds is
// removed before it has been read.
inline constexpr int kReadsOfVanishingCuts = 3;

// The pin of the cut in `folder`; null where locks do not work. NOT_FOUND if there is no cut, or if
// it is being removed. Errors are those of FileSystem.
absl::StatusOr<std::unique_ptr<FileLock>> PinCut(const std::string& folder,
                                                 FileSystem* file_system = DiskFileSystem());

// Locks the cut in `folder` for removal: while the result is held, nobody reads the cut.
// UNAVAILABLE if it is pinned. Null if it has no manifest (any more), or where locks do not work.
// Errors are those of FileSystem.
absl::StatusOr<std::unique_ptr<FileLock>> LockToRemoveCut(const std::string& folder,
                                                          FileSystem* file_system);

// Whether the folder has no manifest. After a failed read this shows whether the cut was removed
// meanwhile. False if it cannot be determined.
bool HasVanished(const std::string& folder, FileSystem* file_system = DiskFileSystem());

// NOT_FOUND, saying which run to name instead, if `path` ends with the folder of a cut that no
// longer exists. OK if `path` does not name a cut of a run.
absl::Status RemovedCutError(const std::string& path);

}  // namespace satrap

#endif  // SATRAP_COMMON_CHECKPOINT_CUT_PIN_H_
