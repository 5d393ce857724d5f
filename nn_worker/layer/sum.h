// y = the sum of all elements of all inputs.   xs: [d_1], [d_2], ...  y: [1]

#ifndef SATRAP_NN_WORKER_LAYER_SUM_H_
#define SATRAP_NN_WORKER_LAYER_SUM_H_

#include <memory>

#include "absl/status/statusor.h"
#include "nn_worker/layer/layer.h"

namespace satrap {

absl::StatusOr<std::unique_ptr<Layer>> NewSumLayer();

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_LAYER_SUM_H_
