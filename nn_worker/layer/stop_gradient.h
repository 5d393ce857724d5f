// y = x, of any shape. No gradient flows back.

#ifndef SATRAP_NN_WORKER_LAYER_STOP_GRADIENT_H_
#define SATRAP_NN_WORKER_LAYER_STOP_GRADIENT_H_

#include <memory>

#include "absl/status/statusor.h"
#include "nn_worker/layer/layer.h"

namespace satrap {

absl::StatusOr<std::unique_ptr<Layer>> NewStopGradientLayer();

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_LAYER_STOP_GRADIENT_H_
