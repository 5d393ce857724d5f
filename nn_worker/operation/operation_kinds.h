// The kinds of some operations of a Backend (backend.h has their formulas). Kernels include this
// header, so it includes no header of a backend.

#ifndef SATRAP_NN_WORKER_OPERATION_OPERATION_KINDS_H_
#define SATRAP_NN_WORKER_OPERATION_OPERATION_KINDS_H_

#include <cstdint>

namespace satrap {

enum class Activation : int32_t { kLinear, kRelu, kSigmoid, kTanh };
enum class CandidateLossKind : int32_t { kSoftmax, kLogistic };
enum class SequencePooling : int32_t { kMean, kSum, kMax };

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_OPERATION_OPERATION_KINDS_H_
