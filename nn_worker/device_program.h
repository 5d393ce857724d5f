// The part of an NN worker's program that needs the kernels of a device. There are three programs:
// nn_worker has no kernels and computes on the CPU alone, nn_worker_host has the kernels of the
// host's device, and nn_worker_cuda has those of cards.
//
// Thread-safe: const and without state.

#ifndef SATRAP_NN_WORKER_DEVICE_PROGRAM_H_
#define SATRAP_NN_WORKER_DEVICE_PROGRAM_H_

#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/role/rendezvous_store.h"
#include "nn_worker/backend/backend.h"
#include "nn_worker/backend/device/device_room.h"
#include "nn_worker/backend/job_backend.h"
#include "nn_worker/collective/device_reduction.h"
#include "nn_worker/collective/nccl_collective.h"
#include "nn_worker/trainer/memory_plan/device_plan.h"
#include "proto/job.pb.h"

namespace satrap {

class DeviceProgram {
 public:
  virtual ~DeviceProgram() = default;

  virtual bool has_cards() const = 0;
  // As PlanDevice (nn_worker/trainer/device_rehearsal.h).
  virtual absl::StatusOr<DevicePlan> Plan(const JobConfig& job) const = 0;
  // As NewDeviceJobBackend (nn_worker/backend/device/backend_factory.h). REQUIRES: the job's device
  // is not CPU
  virtual absl::StatusOr<JobBackend> NewBackend(const NnWorkerConfig& config, int card,
                                                const DeviceNeed& need) const = 0;
  // As in nn_worker/backend/device/device_factory.h.
  virtual absl::Status CheckReduction() const = 0;
  virtual absl::StatusOr<std::unique_ptr<DeviceReduction>> NewReduction(
      const NcclOptions& options, RendezvousStore* store,
      absl::FunctionRef<bool()> aborted) const = 0;
};

// A DeviceProgram with the kernels that the program links.
std::unique_ptr<DeviceProgram> NewDeviceProgram();

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_DEVICE_PROGRAM_H_
