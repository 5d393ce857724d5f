// What the benchmarks of whole runs share: the job that they train.
//
// Thread-safe: functions of their arguments.

#ifndef SATRAP_DEPLOY_CLI_BENCH_BENCH_JOB_H_
#define SATRAP_DEPLOY_CLI_BENCH_BENCH_JOB_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/job.pb.h"

namespace satrap {

// Whether the CPU's matrix products limit the job, so that bench deepfm measures them afterwards.
// Not true for training on a device: for its large batches the CPU would take minutes.
bool MeasuresProducts(const JobConfig& job);

// Gives the job's synthetic log vocabularies with `rows` ids in total, the i-th proportional to 1 /
// i^1.5 and with at least one id, and makes rows for all of them before training begins. REQUIRES:
// rows >= the number of features; features and vocabularies are the same, in one table
void SetRows(int64_t rows, JobConfig* job);

// The job deploy/jobs/bench_deepfm.textproto with two processes of each role, no sample used twice,
// `rows` rows, and the overrides `sets`.
absl::StatusOr<JobConfig> JobOfTwos(const std::string& install_dir,
                                    const std::vector<std::string>& sets, int64_t rows);

// The median; 0 if there are no values.
double MedianOf(std::vector<double> values);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_CLI_BENCH_BENCH_JOB_H_
