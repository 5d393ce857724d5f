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
// warning, or "". Errors as WriteFileAtomically. But if the job is not `required` there, because
// the log has it, and the file has an older job, then the file stays as it is and the error becomes
// a warning: a full disk must not end a run here.
absl::StatusOr<std::string> WriteJobFile(const std::string& path, const JobConfig& job,
                                         bool required);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_LAUNCHER_JOB_FILE_H_
