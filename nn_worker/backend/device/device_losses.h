// The losses of DeviceBackend (backend.h, loss_operations.h). Their tensors are F32 in every
// precision.
//
// Thread-compatible, as every Backend.

#ifndef SATRAP_NN_WORKER_BACKEND_DEVICE_DEVICE_LOSSES_H_
#define SATRAP_NN_WORKER_BACKEND_DEVICE_DEVICE_LOSSES_H_

#include "nn_worker/backend/device/device_interaction.h"
#include "nn_worker/backend/device/device_transfers.h"
#include "nn_worker/backend/operation_operands.h"

namespace satrap {

// A base of DeviceBackend.
class DeviceLossBackend : public DeviceInteractionBackend {
 public:
  SATRAP_LOSS_OPERATIONS(SATRAP_DECLARE_OPERATION)

 protected:
  // `transfers` is not owned and must outlive every operation.
  explicit DeviceLossBackend(DeviceTransfers* transfers)
      : DeviceInteractionBackend(transfers), losses_(*transfers) {}

 private:
  DeviceTransfers& losses_;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_BACKEND_DEVICE_DEVICE_LOSSES_H_
