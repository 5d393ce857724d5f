// y = x * mask / (1 - rate) in training, y = x in evaluation, of any shape. The mask is a function
// of (seed, step, number of the sample within the step, column). In ordered mode that number is the
// sample's index in the global batch, so the mask is the same for any division among ranks.

#ifndef SATRAP_NN_WORKER_LAYER_DROPOUT_H_
#define SATRAP_NN_WORKER_LAYER_DROPOUT_H_

#include <memory>

#include "absl/status/statusor.h"
#include "nn_worker/layer/layer.h"
#include "proto/model.pb.h"

namespace satrap {

// INVALID_ARGUMENT if rate is not in [0, 1).
absl::StatusOr<std::unique_ptr<Layer>> NewDropoutLayer(const DropoutConfig& config);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_LAYER_DROPOUT_H_
