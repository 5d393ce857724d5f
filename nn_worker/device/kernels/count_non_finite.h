// How many values are infinite or NaN.

#ifndef SATRAP_NN_WORKER_DEVICE_KERNELS_COUNT_NON_FINITE_H_
#define SATRAP_NN_WORKER_DEVICE_KERNELS_COUNT_NON_FINITE_H_

#include <cstdint>

#include "nn_worker/device/device_stream.h"
#include "nn_worker/device/kernels/values.h"

namespace satrap {

// The values of `partials` that CountNonFinite needs at most.
inline constexpr int64_t kNonFinitePartials = 1024;

// *count += the number of values of x that are infinite or NaN.
//   partials: [kNonFinitePartials], overwritten
void CountNonFinite(DeviceStream* stream, ConstValues x, uint64_t* partials, double* count);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_DEVICE_KERNELS_COUNT_NON_FINITE_H_
