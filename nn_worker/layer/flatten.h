// The same values as one vector.   x: any shape  y: [values of x]

#ifndef SATRAP_NN_WORKER_LAYER_FLATTEN_H_
#define SATRAP_NN_WORKER_LAYER_FLATTEN_H_

#include <memory>

#include "absl/status/statusor.h"
#include "nn_worker/layer/layer.h"

namespace satrap {

absl::StatusOr<std::unique_ptr<Layer>> NewFlattenLayer();

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_LAYER_FLATTEN_H_
