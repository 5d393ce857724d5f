// The loops of CpuBackend. Each works on rows [begin, end) of its tensors in the calling thread.
// Each is compiled for AVX-512, AVX2 and plain x86-64, and the program chooses one version when it
// starts. The formulas are those of backend.h.
//
// Thread-safe: a loop writes only the given rows, or the sums passed to it.

#ifndef SATRAP_NN_WORKER_BACKEND_CPU_CPU_KERNELS_H_
#define SATRAP_NN_WORKER_BACKEND_CPU_CPU_KERNELS_H_

#include <cstdint>

#include "absl/types/span.h"
#include "nn_worker/backend/backend.h"

namespace satrap::cpu {

void FillRows(Tensor y, float value, int64_t begin, int64_t end);
void CopyRows(Tensor x, Tensor y, bool add, int64_t begin, int64_t end);

// y := activation(y + bias), in place; `bias` may be null.
void BiasActivateRows(const float* bias, Activation activation, Tensor y, int64_t begin,
                      int64_t end);
void ActivateRows(Activation activation, Tensor x, Tensor y, int64_t begin, int64_t end);
void ActivateGradRows(Activation activation, Tensor y, Tensor dy, GradientTarget dx, int64_t begin,
                      int64_t end);

// y[i, 0] = activation(x[i, :] . w + bias).
void DotRows(Tensor x, const float* w, float bias, Activation activation, Tensor y, int64_t begin,
             int64_t end);
// dx[i, :] = dz[i, 0] * w.
void OuterRows(Tensor dz, const float* w, GradientTarget dx, int64_t begin, int64_t end);
// sums[c] = sum over rows of scale[i, 0] * x[i, c]. An empty `scale` stands for ones.
void WeightedColumnSums(Tensor x, Tensor scale, int64_t begin, int64_t end, float* sums);
// Adds the `parts` partial sums to total, in order, for columns [0, cols).
void AddPartials(const float* partials, int64_t parts, int64_t cols, float* total);
void AddPartials(const double* partials, int64_t parts, int64_t cols, double* total);
// out[c * out_stride + r] = in[r * cols + c] for rows [begin, end).
void TransposeRows(const float* in, int64_t cols, int64_t begin, int64_t end, float* out,
                   int64_t out_stride);

void RowSumRows(absl::Span<const Tensor> xs, Tensor y, int64_t begin, int64_t end);
void RowSumGradRows(Tensor dy, absl::Span<const Tensor> dxs, bool add, int64_t begin, int64_t end);
void FmRows(absl::Span<const Tensor> xs, Tensor s, Tensor y, int64_t begin, int64_t end);
void FmGradRows(absl::Span<const Tensor> xs, Tensor s, Tensor dy,
                absl::Span<const GradientTarget> dxs, int64_t begin, int64_t end);
void DropoutRows(Tensor x, uint64_t key, int64_t first_sample, float rate, Tensor y, bool add,
                 int64_t begin, int64_t end);

// sums[0..cols) = sum x, sums[cols..2 cols) = sum x^2.
void MomentsRows(Tensor x, int64_t begin, int64_t end, double* sums);
// y = (x - mean) * scale + beta, scale = gamma / std.
void NormalizeRows(Tensor x, const float* mean, const float* scale, const float* beta, Tensor y,
                   int64_t begin, int64_t end);
// sums[0..cols) = sum dy, sums[cols..2 cols) = sum dy * xhat.
void BatchNormGradSumsRows(Tensor x, Tensor stats, Tensor dy, int64_t begin, int64_t end,
                           double* sums);
// dx = scale * (dy - mean_dy - xhat * mean_dy_xhat).
void BatchNormGradRows(Tensor x, Tensor stats, const float* scale, const float* mean_dy,
                       const float* mean_dy_xhat, Tensor dy, GradientTarget dx, int64_t begin,
                       int64_t end);

// sums[0] = sum weight * loss, sums[1] = sum weight.
void BceRows(float gradient_scale, Tensor logits, Tensor labels, Tensor weights, Tensor mask,
             Tensor dlogits, int64_t begin, int64_t end, double* sums);
int64_t BeyondRows(Tensor x, float limit, int64_t begin, int64_t end);

}  // namespace satrap::cpu

#endif  // SATRAP_NN_WORKER_BACKEND_CPU_CPU_KERNELS_H_
