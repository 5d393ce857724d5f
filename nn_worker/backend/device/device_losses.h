// The losses of DeviceBackend (backend.h, loss_operations.h). Their tensors are F32 in every
// precision.
//
// Thread-compatible, as every Backend.

#ifndef SATRAP_NN_WORKER_BACKEND_DEVICE_DEVICE_LOSSES_H_
#define SATRAP_NN_WORKER_BACKEND_DEVICE_DEVICE_LOSSES_H_

#include "nn_worker/backend/device/device_interaction.h"
#include "nn_worker/backend/device/device_transfers.h"

namespace satrap {

// A base of DeviceBackend.
class DeviceLossBackend : public DeviceInteractionBackend {
 public:
  void BceWithLogits(Tensor control, Tensor logits, Tensor labels, Tensor weights, Tensor mask,
                     Tensor dlogits, Tensor sums) final;
  void SquaredError(Tensor control, Tensor outputs, Tensor labels, Tensor weights, Tensor mask,
                    Tensor doutputs, Tensor sums) final;
  void PairwiseLogistic(Tensor control, Tensor scores, Tensor pairs, Tensor weights, Tensor dscores,
                        Tensor sums) final;
  void SoftmaxCrossEntropy(Tensor control, Tensor logits, Tensor labels, Tensor weights,
                           Tensor mask, Tensor dlogits, Tensor sums) final;
  void CandidateLoss(Tensor control, const CandidateLossArgs& args) final;

 protected:
  // `transfers` is not owned and must outlive every operation.
  explicit DeviceLossBackend(DeviceTransfers* transfers)
      : DeviceInteractionBackend(transfers), losses_(*transfers) {}

 private:
  DeviceTransfers& losses_;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_BACKEND_DEVICE_DEVICE_LOSSES_H_
