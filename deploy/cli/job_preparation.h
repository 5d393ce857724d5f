// Turns the job's file and what the user typed into the job that is run: applies overrides, and
// checks the model's graph and the data files before any process is started.

#ifndef SATRAP_DEPLOY_CLI_JOB_PREPARATION_H_
#define SATRAP_DEPLOY_CLI_JOB_PREPARATION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "proto/job.pb.h"

namespace satrap {

// Loads the job (common/config/job_config.h), makes its data_root absolute, replaces its init_from
// by the absolute path of the model that it names (FindModel), and checks that its model fits its
// inputs and that its data files exist. INVALID_ARGUMENT names the layer that does not fit. Errors
// in the job and its data files list every problem found, one per line. The job's needs of its NN
// workers' devices (DeviceNeedOf) are determined in any case; `*device_need`, unless null, receives
// them.
absl::StatusOr<JobConfig> PrepareJob(const std::string& path, const std::vector<std::string>& sets,
                                     const std::string& install_dir,
                                     std::string* device_need = nullptr);

// A loader leaves out records whose label is no class, and counts classes without the network: too
// many would end the run, and too few would leave out good records. INVALID_ARGUMENT, naming the
// output, unless the loaders know the number (ClassesOf in label_targets.h) and it is the
// network's.
absl::Status CheckClasses(const std::string& output, absl::optional<int64_t> of_loaders,
                          int64_t of_network);

// The overrides with which a job reads data in the same way as the run of the job `trained`, which
// is given by its resolved text. A run of an older build has rows of strings that a new run would
// trim (data.csv.trim_lists), and considers other records good (data.record_rules); the numbers of
// good records decide which of them a seeded split takes.
std::vector<std::string> RowsAsIn(const JobConfig& trained);

// Makes a data_root that is relative to the current directory absolute.
void MakeDataRootAbsolute(JobConfig* job);

// Checks that no file of `outputs` is, under any name, the job's file or one of its data files,
// which would be overwritten. Skips empty names. INVALID_ARGUMENT names the output.
absl::Status CheckOutputs(const JobConfig& job, const std::string& job_path,
                          const std::vector<std::string>& outputs);

// The absolute path by which rank 0 finds the model that `run` names (FindSavedModel). That is the
// path of a run's folder (FindRun), which means the run's best cut, or its newest if no validation
// has chosen one; or of a link to a cut; or of a cut's own folder. A run in training replaces its
// cuts, so the cut that a run or a link means is looked up when it is read, not here. NOT_FOUND if
// there is no cut now.
absl::StatusOr<std::string> FindModel(const std::string& run);

// The ids of the job that will not find the rows of the model at its init_from (IdWarnings,
// common/checkpoint/saved_features.h). Empty without an init_from, or if the model cannot be read
// now: rank 0 reports why.
std::vector<std::string> ModelWarnings(const JobConfig& job);

// The error if a run's job cannot be changed in this way, in the words of a user who typed
// FIELD=VALUE or --set FIELD=VALUE: `what` and the problem in one line, or `what` and a line for
// each problem. `why` is ChangedJob's.
absl::Status CannotChange(const std::string& what, const absl::Status& why);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_CLI_JOB_PREPARATION_H_
