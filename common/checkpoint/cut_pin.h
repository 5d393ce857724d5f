// Pins: whoever reads a cut of a run that may be training holds a shared lock of the cut's
// manifest, so that the run does not remove the cut meanwhile (checkpoint.keep). The run asks for
// the exclusive lock before it removes a cut, and leaves a cut that it does not get for later.
//
// The lock is on the manifest itself, because no other file can be made in a folder that is mounted
// to be read. A manifest goes before all other files of its cut: a reader who holds the lock, and
// finds the manifest then, finds the others, too. Where locks do not reach, nothing is pinned, and
// a reader whose cut vanishes looks for the newest again.
//
// Thread-safe: functions of their arguments and of the disk.

#ifndef SATRAP_COMMON_CHECKPOINT_CUT_PIN_H_
#define SATRAP_COMMON_CHECKPOINT_CUT_PIN_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/checkpoint/file_system.h"

namespace satrap {

// How often a reader looks for the newest cut again, in all.
inline constexpr int kReadsOfVanishingCuts = 3;

// The pin of the cut in `folder`; null where locks do not reach. NOT_FOUND if there is no cut, or
// if it is being removed. Errors as FileSystem.
absl::StatusOr<std::unique_ptr<FileLock>> PinCut(const std::string& folder,
                                                 FileSystem* file_system = DiskFileSystem());

// Whether nobody reads the cut in `folder` while the result is held, and so whether it may be
// removed.
// UNAVAILABLE if it is pinned; null if it has no manifest (any more), or where locks do not reach.
// Errors as FileSystem.
absl::StatusOr<std::unique_ptr<FileLock>> LockToRemoveCut(const std::string& folder,
                                                          FileSystem* file_system);

// Whether the folder has no manifest: after a failed read, whether the cut was removed meanwhile.
// False if that cannot be told.
bool HasVanished(const std::string& folder, FileSystem* file_system = DiskFileSystem());

// NOT_FOUND for a cut that was named by itself, by a path that ends with its folder, and is not
// there any more. Says which run to name instead. OK if `path` does not name a cut of a run.
absl::Status RemovedCutError(const std::string& path);

}  // namespace satrap

#endif  // SATRAP_COMMON_CHECKPOINT_CUT_PIN_H_
