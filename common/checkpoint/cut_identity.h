// Checks which cut a folder holds. A folder's name proves nothing: people copy and rename folders,
// and different runs use the same names. So the CUT entry of the run's log defines which cut a name
// means. Code that starts from a folder, or verifies it, compares the folder with that entry.
//
// Thread-safe: the functions depend only on their arguments.

#ifndef SATRAP_COMMON_CHECKPOINT_CUT_IDENTITY_H_
#define SATRAP_COMMON_CHECKPOINT_CUT_IDENTITY_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/checkpoint/run_log.h"
#include "proto/checkpoint.pb.h"

namespace satrap {

// Checks that the cut in `folder`, whose last component is its name, is the one that `log` commits
// under that name. Compares generation, number, step, order of samples, and the manifest's checksum
// as ReadManifest returns it (entries of older builds have no checksum). The manifest holds the
// checksums of all other files. DATA_LOSS, naming the folder and the first difference;
// FAILED_PRECONDITION if the log has no cut of this name.
absl::Status CheckCutIdentity(const RunLog& log, const std::string& folder,
                              const CheckpointManifest& manifest, uint32_t manifest_crc32c);

// The name of the cut that a user means by `typed`, which may be a name or link in RUN/checkpoints
// (`best`), or a path to one, absolute or relative to the current folder. FAILED_PRECONDITION if
// `typed` is not a folder of this run, or if `log` does not commit that cut; the message says how
// to begin from another run's model. Reads the machine's own disk.
absl::StatusOr<std::string> NameOfCut(const RunLog& log, const std::string& run_dir,
                                      const std::string& typed);

}  // namespace satrap

#endif  // SATRAP_COMMON_CHECKPOINT_CUT_IDENTITY_H_
