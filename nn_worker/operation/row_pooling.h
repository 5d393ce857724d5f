// How the rows of a sample's ids are combined into the sample's values; row_exchange_args.h has the
// formulas. Kernels include this header, so it includes no header of a backend.

#ifndef SATRAP_NN_WORKER_OPERATION_ROW_POOLING_H_
#define SATRAP_NN_WORKER_OPERATION_ROW_POOLING_H_

#include <cstdint>

namespace satrap {

enum class RowPooling : int32_t { kSum, kMean, kSqrtN, kNone };

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_OPERATION_ROW_POOLING_H_
