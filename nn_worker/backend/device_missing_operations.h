// The operations that devices have no kernels for: those of feature interactions, and all losses but
// BCE. Each ends the process and names itself; a model that needs one trains on the CPU (docs/gpu.md).

#ifndef SATRAP_NN_WORKER_BACKEND_DEVICE_MISSING_OPERATIONS_H_
#define SATRAP_NN_WORKER_BACKEND_DEVICE_MISSING_OPERATIONS_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "nn_worker/backend/backend.h"

namespace satrap {

// A base of DeviceBackend.
class DeviceMissingOperations : public Backend {
 public:
  void Scale(float, Tensor, Tensor, bool) final { Miss("Scale"); }
  void Multiply(Tensor, Tensor, Tensor, bool) final { Miss("Multiply"); }
  void Transpose(Tensor, int64_t, Tensor, bool) final { Miss("Transpose"); }
  void BatchedProduct(const SampleMatrices&, const SampleMatrices&, int64_t, float,
                      const SampleMatrices&, bool) final {
    Miss("BatchedProduct");
  }
  void PairDots(absl::Span<const Tensor>, absl::Span<const PairTerm>, int64_t, Tensor) final {
    Miss("PairDots");
  }
  void PairDotsGrad(absl::Span<const Tensor>, absl::Span<const PairTerm>, int64_t, Tensor,
                    absl::Span<const GradientTarget>) final {
    Miss("PairDotsGrad");
  }
  void BiInteraction(absl::Span<const Tensor>, Tensor, Tensor) final { Miss("BiInteraction"); }
  void BiInteractionGrad(absl::Span<const Tensor>, Tensor, Tensor,
                         absl::Span<const GradientTarget>) final {
    Miss("BiInteractionGrad");
  }
  void Softmax(Tensor, int64_t, Tensor) final { Miss("Softmax"); }
  void SoftmaxGrad(Tensor, Tensor, int64_t, GradientTarget) final { Miss("SoftmaxGrad"); }
  void Normalize(Normalization, Tensor, int64_t, float, Tensor, Tensor) final { Miss("Normalize"); }
  void NormalizeGrad(Normalization, Tensor, Tensor, Tensor, int64_t, GradientTarget) final {
    Miss("NormalizeGrad");
  }
  void SquaredError(Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor) final {
    Miss("SquaredError");
  }
  void PairwiseLogistic(Tensor, Tensor, Tensor, Tensor, Tensor, Tensor) final {
    Miss("PairwiseLogistic");
  }
  void SoftmaxCrossEntropy(Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor) final {
    Miss("SoftmaxCrossEntropy");
  }

 private:
  static void Miss(absl::string_view operation);
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_BACKEND_DEVICE_MISSING_OPERATIONS_H_
