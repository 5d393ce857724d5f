#include "nn_worker/backend/device/dry_backend.h"

#include <utility>

#include "common/base/status_macros.h"
#include "nn_worker/backend/device/device_backend.h"
#include "nn_worker/device/dry_device.h"
#include "nn_worker/device/dry_planner.h"
#include "nn_worker/device/metered_device.h"
#include "nn_worker/products/kernel_products.h"
#include "nn_worker/products/library_products.h"

namespace satrap {

DryBackend::DryBackend(std::shared_ptr<const DeviceMeter> meter, std::unique_ptr<Backend> backend)
    : meter_(std::move(meter)), backend_(std::move(backend)) {}

absl::StatusOr<DryBackend> DryBackend::Create(NnWorkerConfig::Device device) {
  const auto meter = std::make_shared<DeviceMeter>();
  DeviceBackendOptions options;
  options.meter = meter;
  std::unique_ptr<Products> products =
      device == NnWorkerConfig::CUDA ? NewLibraryProducts(NewDryPlanner()) : NewKernelProducts();
  ASSIGN_OR_RETURN(std::unique_ptr<Backend> backend,
                   NewDeviceBackend(NewDryDevice(), std::move(products), options));
  return DryBackend(meter, std::move(backend));
}

// Scratch memory and lists grow from operation to operation, so they are counted separately from
// the memory that callers allocate.
DeviceUse DryBackend::use() const {
  const DeviceMeter::Reading reading = meter_->Read();
  DeviceUse use;
  use.allocated = reading.bytes - reading.scratch_bytes - reading.list_bytes;
  use.scratch = reading.most_scratch_bytes;
  use.lists = reading.network_list_bytes;
  use.part_lists = reading.part_list_bytes;
  return use;
}

}  // namespace satrap
