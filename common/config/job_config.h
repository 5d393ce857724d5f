// Loads a job file and prepares it for the roles.
//
//   job.textproto --LoadJob--> JobConfig with overrides, zoo model and defaults
//   --ResolvedJobText--> run_dir/job.textproto
//
// Thread-safe: the functions depend only on their arguments.

#ifndef SATRAP_COMMON_CONFIG_JOB_CONFIG_H_
#define SATRAP_COMMON_CONFIG_JOB_CONFIG_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/job.pb.h"

namespace satrap {

// Reads `path`, applies `sets` in order (field_path.h), and replaces an empty model.layers by the
// zoo graph INSTALL_DIR/nn_worker/zoo/ZOO.textproto. A job that does not set the rules by which
// text is read (data.csv.trim_lists, data.record_rules) gets the newest rules. Then fills in the
// defaults and validates (validate_job.h). Overrides of model.layers act on the zoo graph's layers.
// An override that gives a stream files removes the stream's topics; an override that gives it
// topics or a topic_pattern removes its files. NOT_FOUND or INVALID_ARGUMENT with every problem
// found, one per line.
absl::StatusOr<JobConfig> LoadJob(const std::string& path, const std::vector<std::string>& sets,
                                  const std::string& install_dir);

// Reads what ResolvedJobText wrote, and only fills in defaults. It does not validate, because a run
// of an earlier build must continue with a job that was valid in that build. Other errors are those
// of LoadJob.
absl::StatusOr<JobConfig> ReadResolvedJob(const std::string& path);

// Adds the sections that a job may leave out, and sets every default. Evaluation streams that read
// topics take brokers, settings, format and columns from data.kafka if they do not set them.
void ResolveJob(JobConfig* job);

// Undoes ResolveJob for the brokers and settings of evaluation streams. If the brokers or settings
// of data.kafka then change, all streams get the new ones when the job is resolved again.
void ForgetInheritedSettings(JobConfig* job);

// The job as text, with every default spelled out.
std::string ResolvedJobText(const JobConfig& job);

// The fingerprint is the same wherever the job runs: XXH64 of the serialised job without paths
// (data_root, run_dir, init_from, file globs), without `kubernetes`, and without the fields that
// say how a Kafka cluster is reached (brokers, settings, group_id, queue_bytes,
// broker_wait_seconds).
uint64_t JobFingerprint(const JobConfig& job);

}  // namespace satrap

#endif  // SATRAP_COMMON_CONFIG_JOB_CONFIG_H_
