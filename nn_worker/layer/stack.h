// n fields of d, one after another.   xs: [d] or [k, d] each  y: [n, d]

#ifndef SATRAP_NN_WORKER_LAYER_STACK_H_
#define SATRAP_NN_WORKER_LAYER_STACK_H_

#include <memory>

#include "absl/status/statusor.h"
#include "nn_worker/layer/layer.h"

namespace satrap {

absl::StatusOr<std::unique_ptr<Layer>> NewStackLayer();

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_LAYER_STACK_H_
