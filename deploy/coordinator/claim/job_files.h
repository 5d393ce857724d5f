// Checks the files that a job names, where only pods see them: before a submission of a run in pods
// begins, its coordinator does what `satrap train` does on the user's machine.
//
// Blocking. Thread-safe: the function depends only on its argument and on the disk.

#ifndef SATRAP_DEPLOY_COORDINATOR_CLAIM_JOB_FILES_H_
#define SATRAP_DEPLOY_COORDINATOR_CLAIM_JOB_FILES_H_

#include "absl/status/status.h"
#include "proto/job.pb.h"

namespace satrap {

// Checks that the data files of the job, the model that it begins from (init_from) and the files to
// which settings of its topics refer are there, and can be read by this process. NOT_FOUND,
// INVALID_ARGUMENT or PERMISSION_DENIED: in one line which are not, and what to do. Other errors
// are those of ListSplits (data_loader/source/split_list.h), FindSavedModel
// (common/checkpoint/model_folder.h) and ResolveKafkaSettings (common/kafka/settings.h).
absl::Status CheckFilesOfPods(const JobConfig& job);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_COORDINATOR_CLAIM_JOB_FILES_H_
