// Sums over the lanes of a warp, in an order that is always the same. For kernel sources.

#ifndef SATRAP_NN_WORKER_DEVICE_KERNELS_WARP_SUM_H_
#define SATRAP_NN_WORKER_DEVICE_KERNELS_WARP_SUM_H_

#include "nn_worker/device/kernel.h"

namespace satrap {

// The sum over each `lanes` neighbouring lanes, in all of them. REQUIRES: all 32 lanes of the warp
// take part; `lanes` is a power of 2, at most 32
template <typename T>
SATRAP_DEVICE T WarpSum(T value, int lanes = kWarpSize) {
  for (int bits = lanes / 2; bits > 0; bits /= 2) value += ShuffleXor(kFullMask, value, bits);
  return value;
}

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_DEVICE_KERNELS_WARP_SUM_H_
