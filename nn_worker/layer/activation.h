// y = f(x), element by element, of any shape. After a Linear, LinearConfig.activation does the same
// in one pass.

#ifndef SATRAP_NN_WORKER_LAYER_ACTIVATION_H_
#define SATRAP_NN_WORKER_LAYER_ACTIVATION_H_

#include <memory>

#include "absl/status/statusor.h"
#include "nn_worker/layer/layer.h"
#include "proto/model.pb.h"

namespace satrap {

// The backend's constant for a configured activation.
Activation ActivationOf(ActivationConfig::Kind kind);

absl::StatusOr<std::unique_ptr<Layer>> NewActivationLayer(const ActivationLayerConfig& config);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_LAYER_ACTIVATION_H_
