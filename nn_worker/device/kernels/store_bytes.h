// Writes a few bytes of the host into device memory, by a kernel that has them as an argument. A
// copy from pinned memory would run on the card's copy engine, and the kernels before and after it
// would each wait some microseconds for it. A kernel costs less: it is only one more small launch.

#ifndef SATRAP_NN_WORKER_DEVICE_KERNELS_STORE_BYTES_H_
#define SATRAP_NN_WORKER_DEVICE_KERNELS_STORE_BYTES_H_

#include <cstdint>

#include "nn_worker/device/device_stream.h"

namespace satrap {

inline constexpr int64_t kMostStoredBytes = 128;

// `host` may change as soon as this returns. `device` may begin at any byte.
// REQUIRES: 0 < bytes <= kMostStoredBytes
void StoreBytes(DeviceStream* stream, const void* host, int64_t bytes, void* device);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_DEVICE_KERNELS_STORE_BYTES_H_
