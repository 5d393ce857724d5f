// Fits the job of `satrap demo --kafka` to its broker, and to the records that are written to its
// topic.
//
// Thread-safe: a function of its arguments.

#ifndef SATRAP_DEPLOY_CLI_KAFKA_DEMO_KAFKA_DEMO_JOB_H_
#define SATRAP_DEPLOY_CLI_KAFKA_DEMO_KAFKA_DEMO_JOB_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "proto/job.pb.h"

namespace satrap {

inline constexpr int kDemoPartitions = 4;  // partitions of the train topic

// Makes all streams of the job read from the broker at `address`. The train stream ends after
// `records` records, or never if that is 0. `satrap produce --synthetic` writes the records to
// kDemoPartitions partitions, possibly after this call. INVALID_ARGUMENT if the job does not train
// from one topic, or if the change makes it invalid.
absl::Status SetDemoTopics(const std::string& address, uint64_t records, JobConfig* job);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_CLI_KAFKA_DEMO_KAFKA_DEMO_JOB_H_
