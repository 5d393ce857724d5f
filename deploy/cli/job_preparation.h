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

// Loads the job (common/config/job_config.h), makes its data_root absolute, and replaces its
// init_from by the absolute path of the model that it names (FindModel). Checks that the job's
// model fits its inputs and that its data files exist. INVALID_ARGUMENT names the layer that does
// not fit. Errors in the job and its data files list every problem found, one per line. Also checks
// the device memory that the job's NN workers need (DeviceNeedOf); `*device_need`, unless null,
// receives the text that DeviceNeedOf returns.
absl::StatusOr<JobConfig> PrepareJob(const std::string& path, const std::vector<std::string>& sets,
                                     const std::string& install_dir,
                                     std::string* device_need = nullptr);

// As PrepareJob, for a job that runs in pods. Its files are in the cluster, so this does not check
// that they exist. But the paths of its data, its init_from and the files of its secrets must be
// below a mount of `kubernetes`. INVALID_ARGUMENT also if one of them is not, or if the job cannot
// run in pods: another action than TRAIN, device HOST, a secret in an environment variable.
absl::StatusOr<JobConfig> PrepareJobOfPods(const std::string& path,
                                           const std::vector<std::string>& sets,
                                           const std::string& install_dir);
// Makes only the checks of PrepareJobOfPods. REQUIRES: the job is resolved and valid
absl::Status CheckJobOfPods(const JobConfig& job);

// Checks the number of classes of a model's output. The loaders leave out records whose label is
// not a class, and they derive the number of classes without building the network. If they assumed
// too many classes, a bad label would end the run; if too few, good records would be left out.
// INVALID_ARGUMENT, naming the output, unless the loaders know the number (`of_loaders`, from
// ClassesOf in label_targets.h) and it equals the network's.
absl::Status CheckClasses(const std::string& output, absl::optional<int64_t> of_loaders,
                          int64_t of_network);

// The overrides with which a new job reads data in the same way as an earlier run did; `trained` is
// the resolved text of that run's job. Without them, a new run would differ from a run of an older
// build in two ways: it would trim strings that the older run did not trim, and so find no rows for
// them (data.csv.trim_lists); and it would take other records for good ones (data.record_rules),
// which changes which records a seeded split selects.
std::vector<std::string> RowsAsIn(const JobConfig& trained);

// If data_root is a relative path, makes it absolute, starting from the current directory.
void MakeDataRootAbsolute(JobConfig* job);

// Checks that none of `outputs` is the job's file or one of its data files, not even by another
// name of the same file. Skips empty names. INVALID_ARGUMENT names the output.
absl::Status CheckOutputs(const JobConfig& job, const std::string& job_path,
                          const std::vector<std::string>& outputs);

// The absolute path by which rank 0 finds the model that `run` names (FindSavedModel in
// common/checkpoint/model_folder.h). `run` is a run's folder (FindRun), a link to a cut, or a cut's
// own folder. A run's folder stands for the run's best cut, or for its newest cut if no validation
// has chosen a best one. A run in training replaces its cuts. So the cut that a run or a link
// stands for is chosen when the model is read, not here. NOT_FOUND if there is no cut now.
absl::StatusOr<std::string> FindModel(const std::string& run);

// Warnings about ids of the job that will not find their rows in the model at its init_from
// (IdWarnings, common/checkpoint/saved_features.h). Empty without an init_from, or if the model
// cannot be read now; rank 0 then reports the reason.
std::vector<std::string> ModelWarnings(const JobConfig& job);

// The error to show if a run's job cannot be changed, worded for a user who typed FIELD=VALUE or
// --set FIELD=VALUE: `what` and the problem in one line, or `what` and a line for each problem.
// `why` is the error of the check that refused the change, for example of ChangedJob.
absl::Status CannotChange(const std::string& what, const absl::Status& why);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_CLI_JOB_PREPARATION_H_
