// Finds the folder of a saved model, which is a cut, by the path that a user gives.
//
// Thread-safe: the function depends only on its argument and on the disk.

#ifndef SATRAP_COMMON_CHECKPOINT_MODEL_FOLDER_H_
#define SATRAP_COMMON_CHECKPOINT_MODEL_FOLDER_H_

#include <string>

#include "absl/status/statusor.h"

namespace satrap {

// The folder of the cut at `path`. This is `path` itself, unless `path` is the folder of a run or
// the `checkpoints` folder in it. In that case the result is the run's best cut or, if the run has
// no best cut, its newest one. Links are resolved, so the result always names the same cut.
// NOT_FOUND if there is no cut, with a message that names the places or says that the cut was
// removed. Other errors are those of ReadManifest.
absl::StatusOr<std::string> FindSavedModel(const std::string& path);

}  // namespace satrap

#endif  // SATRAP_COMMON_CHECKPOINT_MODEL_FOLDER_H_
