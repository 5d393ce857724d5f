// Finds a job's device plan (device_plan.h) without a device.
//
// PlanDevice rehearses a rank on a device without memory (nn_worker/device/dry_device.h): it makes
// the network, sets memory aside for the largest part (largest_part.h), trains a step of each size
// of a full part if the job trains, and scores a part. The memory that is then allocated is what a
// rank allocates on a device, all of it before the first step. A job that only scores needs no
// memory for gradients and the optimizer. For a card, the plan assumes that the library of matrix
// products makes every product that it is asked for, which needs the most memory. Two things are
// not in the plan: the memory that is added when a part comes with more ids than expected, and the
// memory that a card's driver and libraries take for themselves.
//
// It links no kernels; the program links those of its device (device_factory.h).

#ifndef SATRAP_NN_WORKER_TRAINER_DEVICE_REHEARSAL_H_
#define SATRAP_NN_WORKER_TRAINER_DEVICE_REHEARSAL_H_

#include "absl/status/statusor.h"
#include "nn_worker/trainer/memory_plan/device_plan.h"
#include "proto/job.pb.h"

namespace satrap {

// Errors are those of Network::Create. REQUIRES: a validated job
absl::StatusOr<DevicePlan> PlanDevice(const JobConfig& job);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_TRAINER_DEVICE_REHEARSAL_H_
