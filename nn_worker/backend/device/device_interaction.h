// The operations of feature interactions of DeviceBackend: shapes are checked, lists of tensors are
// put where kernels find them, and kernels are enqueued (nn_worker/device/kernels). Fm and its
// gradient (backend.h) are among them, since they share their kernels with the bi-interaction.
//
// Thread-compatible, as every Backend.

#ifndef SATRAP_NN_WORKER_BACKEND_DEVICE_DEVICE_INTERACTION_H_
#define SATRAP_NN_WORKER_BACKEND_DEVICE_DEVICE_INTERACTION_H_

#include <cstdint>

#include "absl/types/span.h"
#include "nn_worker/backend/backend.h"
#include "nn_worker/backend/device/device_transfers.h"

namespace satrap {

// A base of DeviceBackend.
class DeviceInteractionBackend : public Backend {
 public:
  void Fm(absl::Span<const Tensor> xs, Tensor s, Tensor y) final;
  void FmGrad(absl::Span<const Tensor> xs, Tensor s, Tensor dy,
              absl::Span<const GradientTarget> dxs) final;
  void Scale(float factor, Tensor x, Tensor y, bool add) final;
  void Multiply(Tensor a, Tensor b, Tensor y, bool add) final;
  void Transpose(Tensor x, int64_t width, Tensor y, bool add) final;
  void BatchedProduct(const SampleMatrices& a, const SampleMatrices& b, int64_t count, float scale,
                      const SampleMatrices& y, bool add) final;
  void PairDots(absl::Span<const Tensor> xs, absl::Span<const PairTerm> terms, int64_t dim,
                Tensor y) final;
  void PairDotsGrad(absl::Span<const Tensor> xs, absl::Span<const PairTerm> terms, int64_t dim,
                    Tensor dy, absl::Span<const GradientTarget> dxs) final;
  void BiInteraction(absl::Span<const Tensor> xs, Tensor s, Tensor y) final;
  void BiInteractionGrad(absl::Span<const Tensor> xs, Tensor s, Tensor dy,
                         absl::Span<const GradientTarget> dxs) final;
  void Softmax(Tensor x, int64_t width, Tensor y) final;
  void SoftmaxGrad(Tensor y, Tensor dy, int64_t width, GradientTarget dx) final;
  void Normalize(Normalization kind, Tensor x, int64_t width, float epsilon, Tensor y,
                 Tensor inverse) final;
  void NormalizeGrad(Normalization kind, Tensor y, Tensor inverse, Tensor dy, int64_t width,
                     GradientTarget dx) final;

 protected:
  // `transfers` is not owned and must outlive every operation.
  explicit DeviceInteractionBackend(DeviceTransfers* transfers) : operations_(*transfers) {}

 private:
  DeviceTransfers& operations_;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_BACKEND_DEVICE_DEVICE_INTERACTION_H_
