// What the benchmarks of whole runs share: their flags, and the job that they train.
//
// Thread-safe: functions of their arguments.

#ifndef SATRAP_DEPLOY_CLI_BENCH_BENCH_JOB_H_
#define SATRAP_DEPLOY_CLI_BENCH_BENCH_JOB_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "deploy/cli/command_line.h"
#include "proto/job.pb.h"

namespace satrap {

// Sets the number of each flag "--name=value" whose name is among `numbers`. INVALID_ARGUMENT, with
// the flags that `bench` takes, for other flags and for values that are no numbers >= 0.
absl::Status ParseNumberFlags(const std::string& bench, const std::vector<std::string>& flags,
                              const std::vector<std::pair<std::string, double*>>& numbers);

// The flags of `satrap bench deepfm`.
struct DeepFmOptions {
  double seconds = 20;
  double warmup_seconds = 10;
  std::string wire = "F32";
  std::string precision = "F32";  // of the NN worker
  std::string mlp = "400,400,400";
  std::string from_file;
  std::string from_topic;
  std::string brokers;
};
// INVALID_ARGUMENT for other flags, which it names, for numbers below 0, and for data from a file
// and a topic, or from a topic without brokers.
absl::StatusOr<DeepFmOptions> ParseDeepFmFlags(const std::vector<std::string>& flags);

// Whether the CPU's matrix products limit the job, so that bench deepfm measures them afterwards:
// not those of a device, beside which a CPU takes minutes for a large batch.
bool MeasuresProducts(const JobConfig& job);

// Gives the job's synthetic log vocabularies that have `rows` ids together, the i-th proportional
// to 1 / i^1.5 and of one id at least, and all of them rows before training begins.
// REQUIRES: rows >= the number of features; features and vocabularies are the same, in one table
void SetRows(int64_t rows, JobConfig* job);

// deploy/jobs/bench_deepfm.textproto with two processes of each role, every sample made anew,
// `rows` rows, and the overrides of the command line.
absl::StatusOr<JobConfig> JobOfTwos(const CommandLine& line, const std::vector<std::string>& sets,
                                    int64_t rows);

// 0 if there are none.
double MedianOf(std::vector<double> values);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_CLI_BENCH_BENCH_JOB_H_
