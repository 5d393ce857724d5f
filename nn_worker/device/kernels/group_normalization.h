// Softmax and normalisation within groups of `width` neighbouring values of each row, and their
// gradients. The formulas are those of nn_worker/backend/interaction_operations.h.
//
// LanesOf(width) lanes (warp_sum.h) sum up a group: each lane sums every LanesOf(width)-th value,
// and a tree adds up the lanes' sums. So the bits depend only on the group's values. Softmax and
// the gradients sum in f32. Normalize sums in f64, because f32 would lose the differences between
// values that are far from 0. In all functions `width` must divide cols, and y must not overlap x.

#ifndef SATRAP_NN_WORKER_DEVICE_KERNELS_GROUP_NORMALIZATION_H_
#define SATRAP_NN_WORKER_DEVICE_KERNELS_GROUP_NORMALIZATION_H_

#include <cstdint>

#include "nn_worker/device/device_stream.h"
#include "nn_worker/device/kernels/values.h"

namespace satrap {

// y = exp(x - max) / sum exp(x - max).   x, y: (n, cols). A NaN makes its group NaN.
void SoftmaxGroups(DeviceStream* stream, ConstValues x, int64_t width, Values y);
// dx = y * (dy - sum (dy * y)); with `add`, this is added to dx. dx may be dy.
void SoftmaxGroupsGrad(DeviceStream* stream, ConstValues y, ConstValues dy, int64_t width,
                       Values dx, bool add);

// With `centred`, y = (x - mean) * inverse, where inverse = 1 / sqrt(variance + epsilon) for the
// variance of the group's values. Otherwise y = x * inverse, where inverse = 1 / sqrt(sum x^2 +
// epsilon).
//   x, y: (n, cols)   inverse: (n, cols / width)
void NormalizeGroups(DeviceStream* stream, bool centred, ConstValues x, int64_t width,
                     float epsilon, Values y, Values inverse);
// dx = inverse * (dy - mean dy - y mean (dy * y)) with `centred`, otherwise
// inverse * (dy - y sum (dy * y)); with `add`, this is added to dx. dx may be dy.
void NormalizeGroupsGrad(DeviceStream* stream, bool centred, ConstValues y, ConstValues inverse,
                         ConstValues dy, int64_t width, Values dx, bool add);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_DEVICE_KERNELS_GROUP_NORMALIZATION_H_
