// The mean, sum or maximum over the positions of a sequence, and its gradient. The formulas are
// those of nn_worker/backend/backend.h.

#ifndef SATRAP_NN_WORKER_DEVICE_KERNELS_SEQUENCE_POOL_H_
#define SATRAP_NN_WORKER_DEVICE_KERNELS_SEQUENCE_POOL_H_

#include "nn_worker/device/device_stream.h"
#include "nn_worker/device/kernels/values.h"
#include "nn_worker/operation/operation_kinds.h"

namespace satrap {

// x: (n, L d)   lengths: (n, 1), rounded and clamped to [0, L]; NaN counts as 0   y: (n, d)
// REQUIRES: d > 0
void PoolSequences(DeviceStream* stream, SequencePooling pooling, ConstValues x,
                   ConstValues lengths, Values y);
// Computes the gradient of x, where y = SequencePool(x). Assigns it to dx or, with `add`, adds it
// to dx.
void PoolSequencesGrad(DeviceStream* stream, SequencePooling pooling, ConstValues x,
                       ConstValues lengths, ConstValues y, ConstValues dy, Values dx, bool add);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_DEVICE_KERNELS_SEQUENCE_POOL_H_
