// Layer normalisation over the last axis (Ba, Kiros and Hinton 2016), of any shape.
//   y = (x - mean) / sqrt(variance + epsilon) * gamma + beta

#ifndef SATRAP_NN_WORKER_LAYER_LAYER_NORM_H_
#define SATRAP_NN_WORKER_LAYER_LAYER_NORM_H_

#include <memory>

#include "absl/status/statusor.h"
#include "nn_worker/layer/layer.h"
#include "proto/model.pb.h"

namespace satrap {

// INVALID_ARGUMENT unless epsilon is above 0.
absl::StatusOr<std::unique_ptr<Layer>> NewLayerNormLayer(const LayerNormConfig& config);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_LAYER_LAYER_NORM_H_
