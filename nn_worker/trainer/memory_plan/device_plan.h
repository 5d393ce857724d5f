// The device memory that a rank of a job needs, known before the rank has a device.
//
// The plan is made by rehearsal: a rank's network trains and scores on a device without memory, and
// what it would have allocated is counted. These files work together, in this order:
//
//   part_layout.h                     this folder: which inputs of the network a part feeds
//   largest_part.h                    this folder: the largest part that a job can be expected to
//                                     have, for which memory is set aside
//   nn_worker/device/dry_device.h     a device without memory: launches and copies do nothing
//   nn_worker/device/dry_planner.h    the same for a vendor's library of matrix products
//   nn_worker/device/metered_device.h counts the memory of a device, dry or real, and keeps it
//                                     within nn_worker.device_memory_bytes
//   nn_worker/backend/device/dry_backend.h
//                                     a device's backend on these three
//   nn_worker/trainer/device_rehearsal.h
//                                     runs the rehearsal on that backend, and so makes a DevicePlan
//   device_plan.h                     this file: the plan, its text, and its check against the job
//   deploy/cli/device_need.h          `satrap validate` and the launcher make and check the plan
//                                     before any process is started
//   nn_worker/backend/device/device_room.h
//                                     the plan as a DeviceNeed, and its check against the memory
//                                     that the device has free
//   nn_worker/rank_backend.h          a rank makes the plan again, checks both, and then makes its
//                                     backend (backend/device/backend_factory.h), which allocates
//                                     scratch memory and lists at once
//
// Then the rank's trainer sets memory aside for largest_part.h, as in the rehearsal. A part with
// more ids than expected adds memory later, which metered_device.h still counts.

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
