// y = the inputs, one after another.   xs: [d_1], [d_2], ...  y: [d_1 + d_2 + ...]. An input may be
// [0]. Inputs that the graph places within y cost nothing, forward or backward.

#ifndef SATRAP_NN_WORKER_LAYER_CONCAT_H_
#define SATRAP_NN_WORKER_LAYER_CONCAT_H_

#include <memory>

#include "absl/status/statusor.h"
#include "nn_worker/layer/layer.h"

namespace satrap {

absl::StatusOr<std::unique_ptr<Layer>> NewConcatLayer();

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_LAYER_CONCAT_H_
