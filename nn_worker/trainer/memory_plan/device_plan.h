// The device memory that a rank of a job needs, known before the rank has a device.
// device_rehearsal.h makes the plan.

#ifndef SATRAP_NN_WORKER_TRAINER_MEMORY_PLAN_DEVICE_PLAN_H_
#define SATRAP_NN_WORKER_TRAINER_MEMORY_PLAN_DEVICE_PLAN_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "nn_worker/backend/device/device_room.h"
#include "nn_worker/graph/network_options.h"
#include "nn_worker/trainer/memory_plan/part_layout.h"
#include "proto/job.pb.h"
#include "proto/position.pb.h"

namespace satrap {

// The device memory of a rank, in bytes.
struct DevicePlan {
  int64_t network = 0;     // parameters, gradients, optimizer state, activations
  int64_t embeddings = 0;  // of parts: payloads, and the sums of gradients
  int64_t scratch = 0;     // of operations
  int64_t lists = 0;       // that the network's operations read
  int64_t part_lists = 0;  // that the exchange with embedding rows reads
  int64_t total() const { return network + embeddings + scratch + lists + part_lists; }
};

// INVALID_ARGUMENT, naming the field, the need and what to do, if the plan is above the job's
// nn_worker.device_memory_bytes.
absl::Status CheckDevicePlan(const DevicePlan& plan, const NnWorkerConfig& config);

// "1234 bytes of device memory (network 1000, embeddings 200, scratch 30, lists 4)"
std::string DevicePlanText(const DevicePlan& plan);

// The plan in the form that the factory of the rank's backend takes.
DeviceNeed NeedOf(const DevicePlan& plan);

// The options of a rank's network, for a run that continues from `position`. The caller sets
// `backend` and `collective`.
NetworkOptions NetworkOptionsOf(const JobConfig& job, const PartLayout& layout,
                                const RunPosition& position);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_TRAINER_MEMORY_PLAN_DEVICE_PLAN_H_
