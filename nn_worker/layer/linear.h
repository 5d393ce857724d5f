// y = activation(x w + b).   x: [in]  y: [units]. Parameters: weight (in, units), bias (1, units).
// in may be 0 (a job without numerics): then y is activation(b), or zeros without a bias.

#ifndef SATRAP_NN_WORKER_LAYER_LINEAR_H_
#define SATRAP_NN_WORKER_LAYER_LINEAR_H_

#include <memory>

#include "absl/status/statusor.h"
#include "nn_worker/layer/layer.h"
#include "proto/model.pb.h"

namespace satrap {

// INVALID_ARGUMENT if units < 1.
absl::StatusOr<std::unique_ptr<Layer>> NewLinearLayer(const LinearConfig& config);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_LAYER_LINEAR_H_
