#include "nn_worker/device_program.h"

#include "nn_worker/backend/device/backend_factory.h"
#include "nn_worker/backend/device/device_factory.h"
#include "nn_worker/trainer/device_rehearsal.h"

namespace satrap {
namespace {

class LinkedDeviceProgram : public DeviceProgram {
 public:
  bool has_cards() const override { return ProgramHasCards(); }
  absl::StatusOr<DevicePlan> Plan(const JobConfig& job) const override { return PlanDevice(job); }
  absl::StatusOr<JobBackend> NewBackend(const NnWorkerConfig& config, int card,
                                        const DeviceNeed& need) const override {
    return NewDeviceJobBackend(config, card, need);
  }
  absl::Status CheckReduction() const override { return CheckDeviceReduction(); }
  absl::StatusOr<std::unique_ptr<DeviceReduction>> NewReduction(
      const NcclOptions& options, RendezvousStore* store,
      absl::FunctionRef<bool()> aborted) const override {
    return NewDeviceReduction(options, store, aborted);
  }
};

}  // namespace

std::unique_ptr<DeviceProgram> NewDeviceProgram() {
  return std::make_unique<LinkedDeviceProgram>();
}

}  // namespace satrap
