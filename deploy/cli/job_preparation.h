// Turns the job's file and what the user typed beside it into the job that is run: applies
// overrides, and checks the model's graph and the data files before any process is started.

#ifndef SATRAP_DEPLOY_CLI_JOB_PREPARATION_H_
#define SATRAP_DEPLOY_CLI_JOB_PREPARATION_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/job.pb.h"

namespace satrap {

// Loads the job (common/config/job_config.h), makes its data_root absolute, replaces its init_from
// by the absolute path of the model that it names (FindModel), and checks that its model fits its
// inputs and that its data files exist. INVALID_ARGUMENT names the layer that does not fit. Errors
// in the job and its data files list every problem found, one a line. `*device_need`, unless null,
// becomes what the job's NN workers need of their devices (DeviceNeedOf), which is found out here
// in any case.
absl::StatusOr<JobConfig> PrepareJob(const std::string& path, const std::vector<std::string>& sets,
                                     const std::string& install_dir,
                                     std::string* device_need = nullptr);

// The overrides with which a job reads data as the run of the job `trained` did, as its resolved
// text says it: a run of an older build has rows of strings that a new run would trim
// (data.csv.trim_lists), and other records that are good (data.record_rules), whose numbers decide
// which of them a seeded split takes.
std::vector<std::string> RowsAsIn(const JobConfig& trained);

// Makes a data_root that is relative to the current folder absolute.
void MakeDataRootAbsolute(JobConfig* job);

// Checks that no file of `outputs` is, under any name, the job's file or one of its data files,
// which would be overwritten. Skips empty names. INVALID_ARGUMENT names the output.
absl::Status CheckOutputs(const JobConfig& job, const std::string& job_path,
                          const std::vector<std::string>& outputs);

// The absolute path by which rank 0 finds the model that `run` names (FindSavedModel): of a run's
// folder (FindRun), which stands for its best cut, or its newest if no validation has chosen one;
// of a link to a cut; or of a cut's own folder. A run that trains replaces its cuts, so what a run
// or a link stands for is found when it is read, and not here. NOT_FOUND if there is no cut now.
absl::StatusOr<std::string> FindModel(const std::string& run);

// What of the ids of the job does not find the rows of the model at its init_from (IdWarnings,
// common/checkpoint/saved_features.h). Nothing without one, or if none can be read now: rank 0 says
// why.
std::vector<std::string> ModelWarnings(const JobConfig& job);

// The error of a run whose job cannot be changed so, in the words of a user who typed FIELD=VALUE
// or --set FIELD=VALUE: `what` and the one problem in a line, or `what` and a line for each. `why`
// is ChangedJob's.
absl::Status CannotChange(const std::string& what, const absl::Status& why);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_CLI_JOB_PREPARATION_H_
