// The products of all pairs (PNN, Qu et al. 2016).   n fields of d  y: [n (n - 1) / 2]
//   y = <v_i, v_j> for i < j: (0, 1), (0, 2), ..., (1, 2), ...

#ifndef SATRAP_NN_WORKER_LAYER_INNER_PRODUCT_H_
#define SATRAP_NN_WORKER_LAYER_INNER_PRODUCT_H_

#include <memory>

#include "absl/status/statusor.h"
#include "nn_worker/layer/layer.h"

namespace satrap {

absl::StatusOr<std::unique_ptr<Layer>> NewInnerProductLayer();

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_LAYER_INNER_PRODUCT_H_
