// Checks the files that a job in pods names. Only pods see the volumes, so the coordinator checks
// before it begins a submission what `satrap train` checks on the user's machine.
//
// Blocking. Thread-safe: the function depends only on its argument and on the disk.

#ifndef SATRAP_DEPLOY_COORDINATOR_CLAIM_JOB_FILES_H_
#define SATRAP_DEPLOY_COORDINATOR_CLAIM_JOB_FILES_H_

#include "absl/status/status.h"
#include "proto/job.pb.h"

namespace satrap {

// Checks that this process can read the data files of the job, the model that the job begins from
// (init_from) and the files that settings of its topics name. NOT_FOUND, INVALID_ARGUMENT or
// PERMISSION_DENIED: the message says in one line which files cannot be read and what to do. Other
// errors are those of ListSplits (data_loader/source/split_list.h), FindSavedModel
// (common/checkpoint/model_folder.h) and ResolveKafkaSettings (common/kafka/settings.h).
absl::Status CheckFilesOfPods(const JobConfig& job);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_COORDINATOR_CLAIM_JOB_FILES_H_
