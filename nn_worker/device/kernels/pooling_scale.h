// The factor by which a sample's weighted sum of rows is scaled (common/batch/pooling.h). For
// kernel sources.

#ifndef SATRAP_NN_WORKER_DEVICE_KERNELS_POOLING_SCALE_H_
#define SATRAP_NN_WORKER_DEVICE_KERNELS_POOLING_SCALE_H_

#include <cstdint>

#include "nn_worker/device/kernel.h"
#include "nn_worker/operation/row_pooling.h"

namespace satrap {

// 1 / the divisor of the sum over ids [begin, end), or 0 if the divisor is 0. Null `weights` means
// that all weights are 1.
SATRAP_DEVICE inline float PoolingScale(RowPooling pooling, const float* weights, uint32_t begin,
                                        uint32_t end) {
  if (pooling == RowPooling::kSum || pooling == RowPooling::kNone || begin == end) return 1;
  float divisor = static_cast<float>(end - begin);
  if (weights != nullptr) {
    divisor = 0;
    for (uint32_t j = begin; j < end; ++j) {
      divisor += pooling == RowPooling::kMean ? weights[j] : weights[j] * weights[j];
    }
  }
  if (pooling == RowPooling::kSqrtN) divisor = Sqrt(divisor);
  return divisor == 0 ? 0 : 1 / divisor;
}

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_DEVICE_KERNELS_POOLING_SCALE_H_
