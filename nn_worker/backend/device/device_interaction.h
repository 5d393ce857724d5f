// DeviceBackend's operations of feature interactions. They check shapes, copy lists of tensors to
// device memory and enqueue kernels (nn_worker/device/kernels). Fm and its gradient (backend.h) are
// here, too, because they share their kernels with the bi-interaction.
//
// Thread-compatible, as every Backend.

#ifndef SATRAP_NN_WORKER_BACKEND_DEVICE_DEVICE_INTERACTION_H_
#define SATRAP_NN_WORKER_BACKEND_DEVICE_DEVICE_INTERACTION_H_

#include <cstdint>

#include "absl/types/span.h"
#include "nn_worker/backend/backend.h"
#include "nn_worker/backend/device/device_transfers.h"
#include "nn_worker/backend/operation_operands.h"

namespace satrap {

// A base of DeviceBackend.
class DeviceInteractionBackend : public Backend {
 public:
  void Fm(absl::Span<const Tensor> xs, Tensor s, Tensor y) final;
  void FmGrad(absl::Span<const Tensor> xs, Tensor s, Tensor dy,
              absl::Span<const GradientTarget> dxs) final;
  SATRAP_INTERACTION_OPERATIONS(SATRAP_DECLARE_OPERATION)

 protected:
  // `transfers` is not owned and must outlive every operation.
  explicit DeviceInteractionBackend(DeviceTransfers* transfers) : operations_(*transfers) {}

 private:
  DeviceTransfers& operations_;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_BACKEND_DEVICE_DEVICE_INTERACTION_H_
