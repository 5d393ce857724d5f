// y = the sum of the inputs, element by element.   xs, y: one shape

#ifndef SATRAP_NN_WORKER_LAYER_ADD_H_
#define SATRAP_NN_WORKER_LAYER_ADD_H_

#include <memory>

#include "absl/status/statusor.h"
#include "nn_worker/layer/layer.h"

namespace satrap {

absl::StatusOr<std::unique_ptr<Layer>> NewAddLayer();

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_LAYER_ADD_H_
