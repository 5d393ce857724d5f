// y = x / sqrt(sum x^2 + epsilon), the sum over the last axis, of any shape.

#ifndef SATRAP_NN_WORKER_LAYER_L2_NORMALIZE_H_
#define SATRAP_NN_WORKER_LAYER_L2_NORMALIZE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "nn_worker/layer/layer.h"
#include "proto/model.pb.h"

namespace satrap {

// INVALID_ARGUMENT unless epsilon is above 0.
absl::StatusOr<std::unique_ptr<Layer>> NewL2NormalizeLayer(const L2NormalizeConfig& config);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_LAYER_L2_NORMALIZE_H_
