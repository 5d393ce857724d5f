// The product of two inputs, element by element; the second may be [1], which multiplies every element
// of the first.   x_0: any shape  x_1: the same, or [1]  y: that of x_0

#ifndef SATRAP_NN_WORKER_LAYER_MULTIPLY_H_
#define SATRAP_NN_WORKER_LAYER_MULTIPLY_H_

#include <memory>

#include "absl/status/statusor.h"
#include "nn_worker/layer/layer.h"

namespace satrap {

absl::StatusOr<std::unique_ptr<Layer>> NewMultiplyLayer();

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_LAYER_MULTIPLY_H_
