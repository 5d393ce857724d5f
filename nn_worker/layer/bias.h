// y = x + b.   x, y: [dim]. Parameter: bias (1, dim), zero at the start.

#ifndef SATRAP_NN_WORKER_LAYER_BIAS_H_
#define SATRAP_NN_WORKER_LAYER_BIAS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "nn_worker/layer/layer.h"

namespace satrap {

absl::StatusOr<std::unique_ptr<Layer>> NewBiasLayer();

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_LAYER_BIAS_H_
