// The operations Fm and FmGrad of CpuHalfBackend for inputs in BF16. They widen, compute and round
// value by value in registers, whereas a HalfOperation would write f32 copies. The results have the
// same bits as with f32 copies.
//
// Thread-safe: a function writes only the given rows.

#ifndef SATRAP_NN_WORKER_BACKEND_CPU_CPU_HALF_FM_H_
#define SATRAP_NN_WORKER_BACKEND_CPU_CPU_HALF_FM_H_

#include <cstdint>

#include "absl/types/span.h"
#include "nn_worker/backend/tensor.h"

namespace satrap::cpu {

// Whether the functions below take these tensors: all of `xs` and all gradients that are wanted are
// BF16, and no two of those gradients share memory. (The sum of two gradients in one place would be
// rounded twice.) The other tensors of the operations may be BF16 or F32.
bool TakesHalfFm(absl::Span<const Tensor> xs, absl::Span<const GradientTarget> dxs);

// As Backend::Fm and Backend::FmGrad, for rows [begin, end).
void FmHalfRows(absl::Span<const Tensor> xs, const Tensor& s, const Tensor& y, int64_t begin,
                int64_t end);
void FmGradHalfRows(absl::Span<const Tensor> xs, const Tensor& s, const Tensor& dy,
                    absl::Span<const GradientTarget> dxs, int64_t begin, int64_t end);

}  // namespace satrap::cpu

#endif  // SATRAP_NN_WORKER_BACKEND_CPU_CPU_HALF_FM_H_
