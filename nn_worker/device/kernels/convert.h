// Converts values to another type: y = x, or y += x.

#ifndef SATRAP_NN_WORKER_DEVICE_KERNELS_CONVERT_H_
#define SATRAP_NN_WORKER_DEVICE_KERNELS_CONVERT_H_

#include "nn_worker/device/device_stream.h"
#include "nn_worker/device/kernels/matrix.h"

namespace satrap {

// y = To(x), or To(y + x) with the sum in f32. From and To are float, Half or Bf16, or the
// conversion is from double to float. x and y have the same shape and do not overlap.
template <typename From, typename To>
void Convert(DeviceStream* stream, Matrix<const From> x, Matrix<To> y, bool add);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_DEVICE_KERNELS_CONVERT_H_
