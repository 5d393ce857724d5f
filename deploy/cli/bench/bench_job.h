// The job that the benchmarks of whole runs train.
//
// Thread-safe: the functions depend only on their arguments.

#ifndef SATRAP_DEPLOY_CLI_BENCH_BENCH_JOB_H_
#define SATRAP_DEPLOY_CLI_BENCH_BENCH_JOB_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/job.pb.h"

namespace satrap {

// Whether `bench deepfm` measures the job's matrix products on the CPU afterwards, because they
// limit its speed. False for training on a device: its batches are so large that the CPU would take
// minutes.
bool MeasuresProducts(const JobConfig& job);

// Sets the vocabulary sizes of the job's synthetic log: `rows` ids in total, at least one for each
// feature. The share of the i-th feature is proportional to 1 / i^1.5. All rows are made before
// training begins. REQUIRES: rows >= the number of features; there is one vocabulary for each
// feature, and all features use one table
void SetRows(int64_t rows, JobConfig* job);

// The job deploy/jobs/bench_deepfm.textproto with two processes of each role, `rows` rows and the
// overrides `sets`. No sample is used twice.
absl::StatusOr<JobConfig> JobOfTwos(const std::string& install_dir,
                                    const std::vector<std::string>& sets, int64_t rows);

// The median; 0 if there are no values.
double MedianOf(std::vector<double> values);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_CLI_BENCH_BENCH_JOB_H_
