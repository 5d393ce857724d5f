// The interaction operations of CpuBackend: vectorised loops over pieces of the samples, which a
// fork-join pool runs. The pieces have a fixed size and no sum crosses one, so the bits do not
// depend on the number of threads.
//
// Thread-compatible, as every Backend.

#ifndef SATRAP_NN_WORKER_BACKEND_CPU_CPU_INTERACTION_H_
#define SATRAP_NN_WORKER_BACKEND_CPU_CPU_INTERACTION_H_

#include "common/thread/fork_join_pool.h"
#include "nn_worker/backend/cpu/cpu_matrix.h"
#include "nn_worker/backend/cpu/host_backend.h"

namespace satrap {

// A base of CpuBackend.
class CpuInteractionBackend : public HostBackend {
 public:
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
  // `pool` is not owned and must outlive the backend.
  explicit CpuInteractionBackend(ForkJoinPool* pool) : interaction_pool_(*pool) {}

 private:
  ForkJoinPool& interaction_pool_;
  AlignedScratch interaction_scratch_;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_BACKEND_CPU_CPU_INTERACTION_H_
