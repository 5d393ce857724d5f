#include "nn_worker/backend/device/backend_factory.h"

#include <utility>

#include "common/base/status_macros.h"
#include "nn_worker/backend/device/device_backend.h"
#include "nn_worker/backend/device/device_factory.h"
#include "nn_worker/device/metered_device.h"

namespace satrap {

absl::StatusOr<JobBackend> NewDeviceJobBackend(const NnWorkerConfig& config, int card,
                                               const DeviceNeed& need) {
  JobBackend made;
  ASSIGN_OR_RETURN(JobDevice on, NewJobDevice(config, card));
  ASSIGN_OR_RETURN(const DeviceRoom room, on.device->Room());
  RETURN_IF_ERROR(CheckDeviceRoom(need, room));
  made.meter = std::make_shared<DeviceMeter>(config.device_memory_bytes());
  DeviceBackendOptions options;
  options.meter = made.meter;
  options.scratch_bytes = need.scratch_bytes;
  options.list_bytes = need.list_bytes;
  options.part_list_bytes = need.part_list_bytes;
  ASSIGN_OR_RETURN(made.backend,
                   NewDeviceBackend(std::move(on.device), std::move(on.products), options));
  return made;
}

}  // namespace satrap
