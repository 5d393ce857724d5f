// The job in a run's folder, for people, and for the coordinator of a run that begins or is
// resumed.
//
// Thread-compatible: a function of its arguments and of the file.

#ifndef SATRAP_DEPLOY_LAUNCHER_JOB_FILE_H_
#define SATRAP_DEPLOY_LAUNCHER_JOB_FILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "proto/job.pb.h"

namespace satrap {

// Writes `job` into the file at `path` unless the file has it already. Errors as
// WriteFileAtomically. But if the job is not `required` there, because the log has it, and the file
// has an older job, then that stays and the error is returned as the text of a warning: a full disk
// must not end a run here. The text is empty if there is no warning.
absl::StatusOr<std::string> WriteJobFile(const std::string& path, const JobConfig& job,
                                         bool required);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_LAUNCHER_JOB_FILE_H_
