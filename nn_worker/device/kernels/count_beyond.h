// Counts values whose magnitude is above a limit.

#ifndef SATRAP_NN_WORKER_DEVICE_KERNELS_COUNT_BEYOND_H_
#define SATRAP_NN_WORKER_DEVICE_KERNELS_COUNT_BEYOND_H_

#include <cstdint>

#include "nn_worker/device/device_stream.h"
#include "nn_worker/device/kernels/values.h"

namespace satrap {

// The maximum number of values of `partials` that CountBeyond needs.
inline constexpr int64_t kBeyondPartials = 1024;

// *count += the number of values of x whose magnitude is above `limit`, or that are NaN.
//   partials: [kBeyondPartials], overwritten
void CountBeyond(DeviceStream* stream, ConstValues x, float limit, uint64_t* partials,
                 double* count);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_DEVICE_KERNELS_COUNT_BEYOND_H_
