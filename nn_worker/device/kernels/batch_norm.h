// Batch normalisation (Ioffe and Szegedy, "Batch Normalization" (2015), algorithm 1), its gradient,
// and the sums that both need. The formulas are those of nn_worker/backend/backend.h.
//
// Sums are in double: the variance is the difference of two sums, and in f32 it would lose all its
// digits in a column whose mean is large. The rows are divided into pieces of kBatchNormRows. A
// block sums up a piece by a tree, and the sums of the pieces are added in order. So the bits
// depend only on the values and the number of rows.
//
// All pointers are to device memory. Vectors have `cols` values without gaps.

#ifndef SATRAP_NN_WORKER_DEVICE_KERNELS_BATCH_NORM_H_
#define SATRAP_NN_WORKER_DEVICE_KERNELS_BATCH_NORM_H_

#include <cstdint>

#include "nn_worker/device/device_stream.h"
#include "nn_worker/device/kernels/values.h"
#include "nn_worker/operation/step_control.h"

namespace satrap {

inline constexpr int64_t kBatchNormRows = 1024;

// The number of values of `partials` that the sums over `rows` rows need.
inline int64_t BatchNormPartials(int64_t rows, int64_t cols) {
  return (rows + kBatchNormRows - 1) / kBatchNormRows * 2 * cols;
}

// The mean of each column, and 1 / sqrt(variance + epsilon).
struct BatchNormStats {
  const float* mean;
  const float* inverse_std;
};

// sums: [2 cols + 1] = [sum x | sum x^2 | rows].
void SumMoments(DeviceStream* stream, ConstValues x, double* partials, double* sums);
// Computes mean and inverse_std from the sums of SumMoments, of one rank or added up over all
// ranks.
void MomentsToStats(DeviceStream* stream, const double* sums, int64_t cols, float epsilon,
                    float* mean, float* inverse_std);
// y = (x - mean) * gamma * inverse_std + beta.
void Normalize(DeviceStream* stream, ConstValues x, const BatchNormStats& stats, const float* gamma,
               const float* beta, Values y);
// inverse_std = 1 / sqrt(variance + epsilon).
void InvertDeviations(DeviceStream* stream, const float* variance, int64_t cols, float epsilon,
                      float* inverse_std);

// grad_sums: [2 cols] = [sum dy | sum dy xhat], xhat = (x - mean) * inverse_std.
void SumBatchNormGrad(DeviceStream* stream, ConstValues x, const BatchNormStats& stats,
                      ConstValues dy, double* partials, double* grad_sums);
// dx = gamma inverse_std (dy - (sum dy + xhat sum dy xhat) / n), n from `sums`; with `add`, this is
// added to dx.
//   means: [2 cols], overwritten
void NormalizeGrad(DeviceStream* stream, ConstValues x, const BatchNormStats& stats,
                   const float* gamma, ConstValues dy, const double* sums, const double* grad_sums,
                   float* means, Values dx, bool add);

// mean, variance (unbiased where n > 1) := momentum * old + (1 - momentum) * batch. Unchanged if n,
// taken from `sums`, is 0 or the control does not apply.
void UpdateRunningStats(DeviceStream* stream, const StepControl* control, const double* sums,
                        int64_t cols, float momentum, float* mean, float* variance);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_DEVICE_KERNELS_BATCH_NORM_H_
