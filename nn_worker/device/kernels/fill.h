// y = value, for every element of y.

#ifndef SATRAP_NN_WORKER_DEVICE_KERNELS_FILL_H_
#define SATRAP_NN_WORKER_DEVICE_KERNELS_FILL_H_

#include "nn_worker/device/device_stream.h"
#include "nn_worker/device/kernels/matrix.h"

namespace satrap {

// T is float, double, Half, Bf16 or uint8_t. `value` is rounded to T.
template <typename T>
void Fill(DeviceStream* stream, Matrix<T> y, float value);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_DEVICE_KERNELS_FILL_H_
