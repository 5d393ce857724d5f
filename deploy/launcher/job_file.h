// Writes the job into a run's folder. The file is for people, and for the coordinator of a run that
// begins or is resumed.
//
// Thread-compatible: a function of its arguments and of the file.

#ifndef SATRAP_DEPLOY_LAUNCHER_JOB_FILE_H_
#define SATRAP_DEPLOY_LAUNCHER_JOB_FILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "proto/job.pb.h"

namespace satrap {

// Writes `job` into the file at `path`, unless the file has it already. Returns the text of a
// warning, or "". Errors are those of WriteFileAtomically, with one exception. If the file has an
// older job, and the new job is not `required` there because the log has it, then an error leaves
// the file as it is and is returned as a warning: a full disk must not end a run here.
absl::StatusOr<std::string> WriteJobFile(const std::string& path, const JobConfig& job,
                                         bool required);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_LAUNCHER_JOB_FILE_H_
