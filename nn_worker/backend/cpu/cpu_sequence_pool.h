// The loops of CpuBackend over sequences, like those of cpu_kernels.h.
//
// Thread-safe: a loop reads and writes only the given rows.

#ifndef SATRAP_NN_WORKER_BACKEND_CPU_CPU_SEQUENCE_POOL_H_
#define SATRAP_NN_WORKER_BACKEND_CPU_CPU_SEQUENCE_POOL_H_

#include <cstdint>

#include "nn_worker/backend/backend.h"

namespace satrap::cpu {

// These functions work on rows [begin, end). REQUIRES: x.cols is a multiple of y.cols
void SequencePoolRows(SequencePooling pooling, Tensor x, Tensor lengths, Tensor y, int64_t begin,
                      int64_t end);
void SequencePoolGradRows(SequencePooling pooling, Tensor x, Tensor lengths, Tensor y, Tensor dy,
                          GradientTarget dx, int64_t begin, int64_t end);

}  // namespace satrap::cpu

#endif  // SATRAP_NN_WORKER_BACKEND_CPU_CPU_SEQUENCE_POOL_H_
