// Finds the file that a user means by the name of a job.
//
// Thread-safe: a function of its arguments.

#ifndef SATRAP_COMMON_CONFIG_JOB_FILE_H_
#define SATRAP_COMMON_CONFIG_JOB_FILE_H_

#include <string>

#include "absl/status/statusor.h"

namespace satrap {

// The file that `job` names: a path, or the name of a file in INSTALL_DIR/deploy/jobs, with or
// without ".textproto". NOT_FOUND says which places were searched and what was probably meant.
absl::StatusOr<std::string> FindJobFile(const std::string& job, const std::string& install_dir);

}  // namespace satrap

#endif  // SATRAP_COMMON_CONFIG_JOB_FILE_H_
