// One layer of DCNv2's cross network (Wang et al. 2021).   x_0, x_l: [d] each  y: [d]
//   y = x_0 * (W x_l + b) + x_l, element by element; W = V U of the given rank, if any

#ifndef SATRAP_NN_WORKER_LAYER_CROSS_V2_H_
#define SATRAP_NN_WORKER_LAYER_CROSS_V2_H_

#include <memory>

#include "absl/status/statusor.h"
#include "nn_worker/layer/layer.h"
#include "proto/model.pb.h"

namespace satrap {

// INVALID_ARGUMENT if the rank is negative, or unless `layers` is 1: the graph expands the others.
absl::StatusOr<std::unique_ptr<Layer>> NewCrossV2Layer(const CrossV2Config& config);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_LAYER_CROSS_V2_H_
