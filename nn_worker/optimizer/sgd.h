// w -= lr g. No state.

#ifndef SATRAP_NN_WORKER_OPTIMIZER_SGD_H_
#define SATRAP_NN_WORKER_OPTIMIZER_SGD_H_

#include <memory>

#include "absl/status/statusor.h"
#include "nn_worker/optimizer/dense_optimizer.h"

namespace satrap {

absl::StatusOr<std::unique_ptr<const DenseOptimizer>> NewSgd();

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_OPTIMIZER_SGD_H_
