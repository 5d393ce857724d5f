// From what the user typed to the job that is run: the file found, overrides applied, the model's
// graph and the data files looked at before anything is started.

#ifndef SATRAP_DEPLOY_CLI_JOB_PREPARATION_H_
#define SATRAP_DEPLOY_CLI_JOB_PREPARATION_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/job.pb.h"

namespace satrap {

// The file that `job` names: a path, or the name of a file of INSTALL_DIR/deploy/jobs, with or
// without ".textproto". NOT_FOUND, saying where it looked and what was probably meant.
absl::StatusOr<std::string> FindJobFile(const std::string& job, const std::string& install_dir);

// Loads the job (common/config/job_config.h), makes its data_root absolute, replaces its init_from
// by the folder of the model that it names (FindModel), and checks that its model fits its inputs
// and its data files are there. INVALID_ARGUMENT naming the layer that does
// not fit; errors of the job and of data files have every problem that was found, one a line.
absl::StatusOr<JobConfig> PrepareJob(const std::string& path, const std::vector<std::string>& sets,
                                     const std::string& install_dir);

// That none of the files `outputs` is the job's file or one of its data files, by whatever name: it
// would be written over. Empty names are none. INVALID_ARGUMENT naming the output.
absl::Status CheckOutputs(const JobConfig& job, const std::string& job_path,
                          const std::vector<std::string>& outputs);

// The folder of the model that `run` names: a run's best model (FindRun), or a model's own folder.
// NOT_FOUND if there is none.
absl::StatusOr<std::string> FindModel(const std::string& run);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_CLI_JOB_PREPARATION_H_
