// y = factor * x, of any shape.

#ifndef SATRAP_NN_WORKER_LAYER_SCALE_H_
#define SATRAP_NN_WORKER_LAYER_SCALE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "nn_worker/layer/layer.h"
#include "proto/model.pb.h"

namespace satrap {

// INVALID_ARGUMENT if the factor is not finite.
absl::StatusOr<std::unique_ptr<Layer>> NewScaleLayer(const ScaleConfig& config);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_LAYER_SCALE_H_
