// Dropout with the mask of nn_worker/operation/dropout_mask.h, which is the same on every backend.

#ifndef SATRAP_NN_WORKER_DEVICE_KERNELS_DROPOUT_H_
#define SATRAP_NN_WORKER_DEVICE_KERNELS_DROPOUT_H_

#include <cstdint>

#include "nn_worker/device/device_stream.h"
#include "nn_worker/device/kernels/values.h"
#include "nn_worker/operation/dropout_mask.h"

namespace satrap {

// y = x * keep / (1 - rate); with `add`, this is added to y. keep[i, c] is a function of
// (RandomBits(seed, pass->step), pass->first_sample + i, c). `pass` is in device memory, and is
// read when the kernel runs. REQUIRES: 0 <= rate < 1
void DropOut(DeviceStream* stream, ConstValues x, uint64_t seed, const PassNumbers* pass,
             float rate, Values y, bool add);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_DEVICE_KERNELS_DROPOUT_H_
