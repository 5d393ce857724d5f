// The device memory that a job needs, checked before any process is started.

#ifndef SATRAP_DEPLOY_CLI_DEVICE_NEED_H_
#define SATRAP_DEPLOY_CLI_DEVICE_NEED_H_

#include <string>

#include "absl/status/statusor.h"
#include "proto/job.pb.h"

namespace satrap {

// The device memory that each NN worker needs, as a text
// (nn_worker/trainer/memory_plan/device_plan.h); empty on the CPU. INVALID_ARGUMENT if it is more
// than the job's nn_worker.device_memory_bytes. REQUIRES: a validated job, whose model fits its
// inputs
absl::StatusOr<std::string> DeviceNeedOf(const JobConfig& job);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_CLI_DEVICE_NEED_H_
