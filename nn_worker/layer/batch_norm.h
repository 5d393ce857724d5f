// y = gamma (x - mean) / sqrt(variance + epsilon) + beta, column by column (Ioffe and Szegedy
// 2015).   x, y: [dim]
// Parameters: gamma, beta (1, dim). States: running_mean, running_variance.
//
// Training uses the mean and variance of the rank's part (scope LOCAL) or of the global batch
// (GLOBAL). GLOBAL adds up its sums over all ranks, forward and backward, so parts of any size,
// even empty ones, give what one machine would compute from the global batch. Evaluation uses the
// running statistics. In both scopes these follow the global batch, each sample with the same
// weight, and they change in EndStep only, if the control applies: a step that does not count or is
// not finite leaves them alone. LOCAL adds up its sums over the ranks there, in every step; GLOBAL
// already has them.

#ifndef SATRAP_NN_WORKER_LAYER_BATCH_NORM_H_
#define SATRAP_NN_WORKER_LAYER_BATCH_NORM_H_

#include <memory>

#include "absl/status/statusor.h"
#include "nn_worker/layer/layer.h"
#include "proto/model.pb.h"

namespace satrap {

// INVALID_ARGUMENT if momentum is not in [0, 1] or epsilon is not > 0.
absl::StatusOr<std::unique_ptr<Layer>> NewBatchNormLayer(const BatchNormConfig& config);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_LAYER_BATCH_NORM_H_
