// Softmax over the last axis, of any shape.

#ifndef SATRAP_NN_WORKER_LAYER_SOFTMAX_H_
#define SATRAP_NN_WORKER_LAYER_SOFTMAX_H_

#include <memory>

#include "absl/status/statusor.h"
#include "nn_worker/layer/layer.h"

namespace satrap {

absl::StatusOr<std::unique_ptr<Layer>> NewSoftmaxLayer();

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_LAYER_SOFTMAX_H_
