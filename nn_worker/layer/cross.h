// One layer of DCN's cross network (Wang et al. 2017).   x_0, x_l: [d] each  y: [d]
//   y = x_0 (w . x_l) + b + x_l

#ifndef SATRAP_NN_WORKER_LAYER_CROSS_H_
#define SATRAP_NN_WORKER_LAYER_CROSS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "nn_worker/layer/layer.h"
#include "proto/model.pb.h"

namespace satrap {

// INVALID_ARGUMENT unless `layers` is 1: the graph expands the others.
absl::StatusOr<std::unique_ptr<Layer>> NewCrossLayer(const CrossConfig& config);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_LAYER_CROSS_H_
